package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// The line of a change names the queue, the kind, the worker and the query of the request, and how many tasks it was about.
func TestTheLineOfAChangeSaysWhatItWasAbout(t *testing.T) {
	s := newStage(t, Config{})
	agent := queuetest.Enqueue(t, s.q, queue.Task{Queue: "agents", Timeout: time.Hour}).ID
	for _, row := range []struct {
		status             int
		method, path, body string
		has                string // words of the line
		lacks              string // a key that means nothing here
	}{
		{201, "POST", "tasks", `{"kind":"render","queue":"mail","id":"0-A1"}`, "task_id=0-A1|queue=mail kind=render", "tasks="},
		{201, "POST", "tasks", `{"kind":"render"}`, "queue=default kind=render", "worker="},
		{200, "POST", "tasks/batch", `{"tasks":[{"kind":"a","queue":"mail"},{"kind":"b","queue":"mail"},{"kind":"c","queue":"mail"}]}`, "tasks=3", "queue="},
		{200, "POST", "workers/w1/fetch", `{"seq":1,"n":2,"queues":["mail","post=1"]}`, `worker=w1 tasks=2|queue="mail,post=1"`, "kind="},
		{200, "POST", "workers/w1/settle", `{"call":"s1","outcomes":[{"id":"0-A1","epoch":1,"verb":"release"},{"id":"0-A2","epoch":1,"verb":"release"}]}`, "worker=w1 tasks=2", "queue="},
		{200, "POST", "tasks/cancel?queue=mail&kind=b&limit=5", "", `query="queue=mail&kind=b&limit=5" tasks=1`, "worker="},
		{200, "POST", "queues/mail/pause", "", "queue=mail", "query="},
		{200, "POST", "queues/new/limit?force=true", `{"max_running":1}`, `queue=new query="force=true"`, "tasks="},
		{200, "POST", "queues/mail/drain", "", "queue=mail tasks=", "kind="},
		{200, "PUT", "kinds/render", `{"timeout_ms":1000}`, "kind=render", "queue="},
		{200, "POST", "workers/w1/drain", "", "worker=w1", "queue="},
		{200, "POST", "agents/" + agent + "/tasks", `{"queue":"mail","tasks":[{"task_kind":"k"},{"task_kind":"k"}]}`, "task_id=" + agent + "|queue=mail|tasks=2", "worker="},
		{404, "POST", "queues/nowhere/pause", "", "change refused|queue=nowhere", "tasks="},
		{400, "PUT", "kinds/a%22b%20c", `{"timeout_ms":1000}`, `kind="a\"b c"`, "queue="},
		{400, "PUT", "kinds/" + strings.Repeat("k", 1000), `{}`, "kind=" + strings.Repeat("k", mostLogged) + "…", strings.Repeat("k", mostLogged+1)},
	} {
		s.log.Reset()
		s.want(row.status, row.method, row.path, row.body)
		await.Until(t, "the line", func() bool { return strings.Contains(s.log.String(), "HTTP change") })
		text := s.log.String()
		for word := range strings.SplitSeq(row.has, "|") {
			if !strings.Contains(text, word) {
				t.Errorf("%s %s is logged as %s, without %s", row.method, row.path, text, word)
			}
		}
		if strings.Contains(text, " "+row.lacks) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s %s is logged as %s, want one line without %s", row.method, row.path, text, row.lacks)
		}
	}
}
