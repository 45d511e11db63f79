package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/await"
)

// devServer starts `curfew dev` without a demo, and returns it with the URL of its Redis.
func devServer(t *testing.T, more string) (r *running, url string) {
	t.Helper()
	r = start(t, "dev --port 0 "+more)
	return r, r.until(t, `redis://127\.0\.0\.1:\d+`)[0]
}

// Every command works on the Redis of `curfew dev`, or says why it does not.
func TestEveryCommandOnTheServerOfDev(t *testing.T) {
	t.Parallel()
	r, url := devServer(t, "--no-demo")
	said := map[string]string{} // by the name under which a row keeps what was printed
	for _, row := range []struct {
		code       int
		args, want string // want: in stdout, or in stderr if the command fails
		keep       string
	}{
		{0, "enqueue render {} --timeout 50m", "0-", "ID"},
		{0, "enqueue render {} --timeout 50m", "0-", "OTHER"},
		{124, "enqueue render {} --timeout 50ms --wait", "Task exceeded deadline", ""},
		{0, "get $ID", "render  in queue default  PENDING", ""},
		{0, "ls", "render", ""},
		{0, "ls --timed-out", "render", ""},
		{0, "explain $ID", "is PENDING", ""},
		{0, "events", "task_timed_out", ""},
		{0, "deadlines", "2 deadlines within 1h", ""},
		{0, "deadlines --overdue", "", ""},
		{0, "top", "curfew top", ""},
		{0, "queue ls", "default", ""},
		{0, "queue get default", "in line            2", ""},
		{0, "queue pause default", "paused", ""},
		{0, "queue resume default", "resumed", ""},
		{0, "queue limit default --running 3", "3", ""},
		{0, "queue limit default --running 0", "", ""},
		{0, "kind set render --timeout 5s", "timeout 5s", ""},
		{0, "kind get render", "timeout 5s", ""},
		{0, "kind ls", "render", ""},
		{0, "worker ls", "", ""},
		{0, "agent ls", "", ""},
		{0, "export", `"type":"end"`, ""},
		{0, "fsck", "", ""},
		{0, "doctor", "warn   server      the embedded server of `curfew dev`", ""},
		{app.ExitFailed, "doctor --strict", "2 problems", ""},
		{app.ExitFailed, "functions ls", "has the functions built in: FCALL works", ""},
		{app.ExitFailed, "functions load", "has the functions built in: FCALL works", ""},
		{app.ExitFailed, "functions prune", "has the functions built in: FCALL works", ""},
		{0, "namespace ls", "curfew ", ""},
		{0, "namespace create shop", "created", ""},
		{0, "namespace rm shop --yes", "removed", ""},
		{0, "cancel $ID", "cancelled", ""},
		{app.ExitFailed, "wait $ID", "task cancelled", ""},
		{0, "retry $ID", "runs $ID again", ""},
		{0, "rm $ID", "removed", ""},
		{0, "queue drain default --yes", "", ""},
		{0, "cancel $OTHER", "was cancelled before", ""},
		{0, "flow put " + definitionFile, "stored", ""},
		{0, "flow ls", "publish", ""},
		{0, "flow show publish", "entrypoint: main", ""},
		{0, "flow graph publish", "flowchart", ""},
		{0, "flow run publish -p page=1", "0-", "FLOW"},
		{0, "flow get $FLOW", "render", ""},
		{0, "flow runs publish", "$FLOW", ""},
		{app.ExitUsage, "flow resume $FLOW render", "render", ""},
		{0, "flow cancel $FLOW", "cancelled", ""},
		{0, "demo fanout --timeout 1s", "The scene kept its promises", ""},
	} {
		for name, value := range said {
			row.args, row.want = strings.ReplaceAll(row.args, "$"+name, value), strings.ReplaceAll(row.want, "$"+name, value)
		}
		inTime(t, func(time.Duration) error { // doctor warns of calls that a busy machine makes slow, and a scene can be late
			code, out, errs := curfew(t, append(strings.Fields(row.args), "--redis", url)...)
			text := out
			if row.code != 0 {
				text = errs
			}
			if code != row.code || !strings.Contains(text, row.want) {
				return lateIf(slowCalls.MatchString(out) || promises.MatchString(errs),
					fmt.Errorf("curfew %s: exit %d, stdout %q, stderr %q; want exit %d and %q", row.args, code, out, errs, row.code, row.want))
			}
			if row.keep != "" {
				said[row.keep] = strings.TrimSpace(out)
			}
			return nil
		})
	}
	// Those that run until they are interrupted.
	for args, want := range map[string]string{"events -f": "task_enqueued", "reap --namespace curfew": "The reaper runs", "dev --demo -o text": "woke +agent"} {
		command, rest, _ := strings.Cut(args, " ")
		follows := start(t, command+" --redis "+url+" "+rest)
		await.Until(t, args+" runs", func() bool {
			return regexp.MustCompile(want).MatchString(follows.out.String()+follows.errs.String()) || len(follows.ended) > 0
		})
		follows.interrupt()
		if code := await.Receive(t, follows.ended, "the end of "+args); code != 0 {
			t.Errorf("curfew %s: exit %d, stderr %q", args, code, follows.errs.String())
		}
	}
	work := itself("work --redis " + url + " --kind render -- cat") // a process, since it starts others
	worker := spawn(t, work)
	code, out, errs := curfew(t, "enqueue", "render", `"done"`, "--timeout", "1m", "--wait", "--redis", url)
	if code != 0 || out != "\"done\"\n" {
		t.Errorf("enqueue --wait: exit %d, stdout %q, stderr %q", code, out, errs)
	}
	worker.Signal(os.Interrupt)
	if !worker.Succeeded() {
		t.Errorf("work: %v", work.ProcessState)
	}
	r.end(t)
}

// Another process enqueues a task that hangs, and an agent, as a program in any language does.
func TestDevShowsTheTasksOfOthers(t *testing.T) {
	t.Parallel()
	r, url := devServer(t, "--demo --timeout 10ms -o text")
	port := url[strings.LastIndex(url, ":")+1:]
	for name, cmd := range map[string]*exec.Cmd{
		"curfew":    itself("enqueue hang {} --timeout 60ms --redis " + url),
		"redis-cli": exec.Command("redis-cli", "-p", port, "FCALL", "curfew_enqueue", "1", "curfew:{0}", "hang", "payload", "{}", "timeout", "60ms"),
	} {
		id, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.until(t, `TIMEOUT +hang +`+regexp.QuoteMeta(strings.TrimSpace(string(id)))+` +after 0\.060 s, noticed \d+ ms late\n`)
	}
	agent, err := exec.Command("redis-cli", "-p", port, "FCALL", "curfew_enqueue", "1", "curfew:{0}", "agent", "payload", `{"timeout_ms":70}`).Output()
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.QuoteMeta(strings.TrimSpace(string(agent)))
	r.until(t, `TIMEOUT +hang +`+id+`\.1 +after 0\.070 s`)
	r.until(t, `woke +agent +`+id+` +was due no later than .*, lag \d+ ms\n`)
	r.end(t)
}
