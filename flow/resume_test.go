package flow_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/refusal"
)

// approvals is a run with a wait at its top, a wait in a part, an echo that waits, and nodes that never wait.
var approvals = dagOf("approvals", "", `{"name":"first","executor":{"type":"wait"}},
	{"name":"part","template":"inner"},{"name":"echo","executor":{"type":"echo"},"inputs":{"parameters":[{"name":"suspend","value":true}]},"dependencies":["first"]},`+
	job("job", "")+`,{"name":"out","executor":{"type":"set","values":{"v":"{{ tasks.first.outputs.parameters.ok }}"}},"dependencies":["first","part","echo"]}`,
	`,{"name":"inner","dag":{"tasks":[{"name":"approval","executor":{"type":"wait"}}]}}`)

// Resume ends exactly the wait of the node that it is given, once, and anything else is refused in words and changes nothing.
func TestResume(t *testing.T) {
	s := newStage(t)
	s.put(approvals)
	id := s.enqueue("flow.approvals", "")
	s.drain()
	begin := "first:Suspended/executing part:Suspended/executing[approval:Suspended/executing] echo:Created/pending<first job:Ready/dispatched out:Created/pending<first,part,echo"
	s.see(id, flow.Suspended, begin)
	refused := func(run, node string, value any, is error, want string) {
		t.Helper()
		if err := flow.Resume(s.ctx, s.q, run, node, value); !errors.Is(err, is) || !strings.Contains(err.Error(), want) {
			t.Errorf("Resume of %s returns %v, want %s", node, err, want)
		}
	}
	refused(id, "frist", nil, refusal.ErrNotFound, "did you mean first?")
	refused(id, "part/aproval", nil, refusal.ErrNotFound, "in part: the run has no node aproval: did you mean approval?")
	refused(id, "part", nil, refusal.ErrInvalid, "does not wait for a signal: its kind is flow.approvals/inner")
	refused(id, "job", nil, refusal.ErrInvalid, "does not wait for a signal: its kind is job")
	refused(id, "echo", nil, refusal.ErrInvalid, "does not wait yet: it waits for first")
	refused(id, "first", func() {}, refusal.ErrInvalid, "cannot be written as JSON")
	refused(id+"x", "first", nil, refusal.ErrNotFound, "")
	s.drain()
	s.see(id, flow.Suspended, begin)

	for _, node := range []string{"first", "part/approval", "echo"} {
		if err := flow.Resume(s.ctx, s.q, id, node, map[string]any{"ok": 7}); err != nil {
			t.Fatal(err)
		}
		s.drain()
		refused(id, node, nil, refusal.ErrConflict, "does not wait any more: it is Succeeded")
	}
	s.complete(id+".job", "job", `{}`)
	r := s.see(id, flow.Succeeded, "first:Succeeded/completed part:Succeeded/completed[approval:Succeeded/completed] echo:Succeeded/completed job:Succeeded/completed out:Succeeded/completed")
	if want := `{"outputs":{"parameters":{"job":{},"out":{"v":7}}}}`; string(r.Record.Result) != want {
		t.Errorf("the result is %s, want %s", r.Record.Result, want)
	}
}

// Decides names the node that is out of time first, and what happens then.
func TestDecides(t *testing.T) {
	server := redistest.Embedded(t)
	now := time.Now().Truncate(time.Second)
	server.SetTime(now)
	s := newStageOn(t, server.Client())
	retried := job("x", `,"attempt_timeout":"2m","on_timeout":"retry","retry":{"limit":2}`)
	for i, test := range []struct {
		text, line string // the task of this queue is claimed
		node       string
		want       string
	}{
		{dagOf("f", "", job("x", ""), ""), "", "x", "The run waits for node x, which has no limit of its own; the run is out of time in 1h."},
		{dagOf("f", `,"timeout":null`, job("x", ""), ""), "", "x", "The run waits for node x, which has no limit, and neither has the run: nothing but a signal or a cancellation ends this wait if the node does not end."},
		{dagOf("f", "", job("x", `,"timeout":"12m"`), ""), "", "x", "The run waits for node x, which is out of time in 12m; then the run fails."},
		{dagOf("f", "", job("x", `,"timeout":"12m","continueOn":{"timeout":true}`)+`,`+job("y", `,"timeout":"13m"`), ""), "", "x", "The run waits for node x, which is out of time in 12m; then the run continues without it."},
		{dagOf("f", "", job("x", `,"queue_timeout":"3m"`), ""), "", "x", "The run waits for node x, which has been in line too long in 3m; then the run fails."},
		{dagOf("f", "", retried, ""), "x", "x", "The run waits for node x, whose attempt is out of time in 2m; then it is tried again, for the 1st time of 2."},
		{dagOf("f", "", `{"name":"p","template":"inner"}`, `,{"name":"inner","dag":{"tasks":[`+job("x", `,"timeout":"5m"`)+`]}}`), "", "p/x", "The run waits for node x (p/x), which is out of time in 5m; then its part fails."},
		{dagOf("f", "", `{"name":"p","template":"inner","timeout":"4m"}`, `,{"name":"inner","dag":{"tasks":[`+job("x", `,"timeout":"5m"`)+`]}}`), "", "p", "The run waits for node p, which is out of time in 4m; then the run fails."},
		{fanOf("f", "", "2", `"strategy":"all","timeout":"7m"`), "b", "b/b1", "The run waits for node b (b/b1), whose siblings wait for it before c and are out of time in 7m; then the run fails."},
	} {
		id := fmt.Sprintf("f%d", i)
		s.put(strings.Replace(test.text, `"id":"f"`, `"id":"`+id+`"`, 1))
		run := s.enqueue("flow."+id, "")
		if node, _, sentence := flow.Decides(s.read(run)); node != "" || !strings.HasPrefix(sentence, "No node is under way: the run is Ready") {
			t.Errorf("%d, in line: %s: %s", i, node, sentence)
		}
		s.drain()
		switch test.line {
		case "b":
			s.complete(run+".b__b0", "b", `{}`)
		case "x":
			s.take(run+".x", "x")
		}
		node, at, sentence := flow.Decides(s.read(run))
		if node != test.node || sentence != test.want {
			t.Errorf("%d: %s: %s\nwant %s: %s", i, node, sentence, test.node, test.want)
		}
		if span := regexp.MustCompile(`in (\w+)[;.]`).FindStringSubmatch(sentence); span != nil {
			if d, err := time.ParseDuration(span[1]); err != nil || at.Sub(now) != d {
				t.Errorf("%d: the instant is %v away, want %s", i, at.Sub(now), span[1])
			}
		}
		if _, err := s.q.Cancel(s.ctx, run, ""); err != nil {
			t.Fatal(err)
		}
		s.sweepUntil("its tasks are gone from the queues", func() bool { return true })
		if node, _, sentence := flow.Decides(s.read(run)); node != "" || sentence != "The run has ended: Cancelled." {
			t.Errorf("%d, at its end: %s: %s", i, node, sentence)
		}
	}
	if _, _, sentence := flow.Decides(nil); sentence != "There is no run." {
		t.Error(sentence)
	}
}
