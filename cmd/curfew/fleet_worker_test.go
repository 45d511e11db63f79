package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestWorkersAreListed(t *testing.T) {
	q, url := namespace(t, 0)
	at := " --redis " + url
	if out := expect(t, 0, "", "worker ls"+at); out != "" {
		t.Errorf("without workers: %q", out)
	}
	lives(t, q, "w1", queue.WorkerRunning, `{"name":"mail","host":"h\u001b[2J","pid":7,"concurrency":5,"queues":{"mail":3,"default":1},"kinds":["send","k\u001b"],"started_at":1700000000000}`)
	lives(t, q, "w2", queue.WorkerRunning, "")
	lives(t, q, "w3", queue.WorkerRunning, `{"strict":["b","a"],"concurrency":1}`)
	out := expect(t, 0, "", "worker ls"+at)
	want := "worker state running queues kinds\nw1 running 0/5 default=1,mail=3 send,\"k\\x1b\"\nw2 - 0 - -\nw3 running 0/1 b,a -"
	if squeeze(out) != want {
		t.Errorf("worker ls prints\n%s\nwant\n%s", out, want)
	}
	if out := expect(t, 0, "", "worker ls -o wide"+at); strings.Contains(out, "\x1b") || !strings.Contains(out, `"h\x1b[2J"`) || !strings.Contains(out, "2023-11-14T22:13:20.000Z") {
		t.Errorf("wide: %q", out)
	}
	lines := jsonLines(t, expect(t, 0, "", "worker ls -o jsonl"+at))
	if w := lines[0]; len(lines) != 3 || w["worker"] != "w1" || w["pid"] != 7.0 || w["queues"].([]any)[1].(map[string]any)["weight"] != 3.0 || w["started_at"] != 1700000000000.0 {
		t.Errorf("%v", lines)
	}
	if out := expect(t, 0, "", "worker get w1"+at); row(out, "host") != `host "h\x1b[2J"` || row(out, "pid") != "pid 7" {
		t.Errorf("worker get prints\n%s", out)
	}
	code, out, errs := typing(t, "", "worker get w11 w3 -o json"+at)
	if code != app.ExitNotFound || jsonLines(t, out)[0]["worker"] != "w3" || !strings.Contains(errs, `there is no worker "w11" in this namespace (did you mean w1?): `) {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// awaitAsked waits until a worker is asked to stop.
func awaitAsked(t *testing.T, q *queue.Queue, worker string) {
	t.Helper()
	await.Until(t, worker+" is asked to stop", func() bool {
		workers, err := inspect.Workers(t.Context(), q)
		return err == nil && slices.ContainsFunc(workers, func(w inspect.Worker) bool { return w.ID == worker && !w.StopAsked.IsZero() })
	})
}

// goodbye ends the leases of a worker.
func goodbye(t *testing.T, q *queue.Queue, worker string) {
	t.Helper()
	for p := range q.Partitions() {
		if _, err := claim.Of(q).Heartbeat(t.Context(), p, worker, 0, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAWorkerIsDrained(t *testing.T) {
	q, url := namespace(t, 0)
	at := " --redis " + url
	lives(t, q, "w1", queue.WorkerRunning, "")
	expect(t, app.ExitNotFound, `there is no worker "w2" in this namespace (did you mean w1?): `+"`curfew worker ls` lists those that have a lease", "worker drain w2"+at)
	expect(t, app.ExitUsage, "must be one word", "worker drain \x1b"+at)
	if out := expect(t, 0, "", "worker drain w1"+at); out != "w1  asked to stop\n" {
		t.Errorf("it prints %q", out)
	}
	if out := expect(t, 0, "", "worker ls"+at); row(out, "w1") != "w1 asked to stop 0 - -" {
		t.Errorf("worker ls prints %s", out)
	}
	expect(t, app.ExitTimedOut, "w1 was asked to stop, and is not gone after 100ms", "worker drain w1 --wait --timeout 100ms"+at)

	lives(t, q, "w3", queue.WorkerRunning, "")
	r := start(t, "worker drain w3 --wait"+at)
	awaitAsked(t, q, "w3")
	q.Client().HDel(t.Context(), q.Root(0)+":worker:w3", "stop_at")
	awaitAsked(t, q, "w3") // again, so the command has the reply to the first request
	r.interrupt()
	if code := await.Receive(t, r.ended, "the command ends"); code != app.ExitInterrupted || !strings.Contains(r.errs.String(), "w3 was asked to stop, and is not gone yet") {
		t.Errorf("an interrupt: exit %d, %s", code, &r.errs)
	}
	lives(t, q, "w4", queue.WorkerRunning, "")
	r = start(t, "worker drain w4 --wait -o json"+at)
	awaitAsked(t, q, "w4")
	goodbye(t, q, "w4")
	if code := await.Receive(t, r.ended, "the command ends"); code != 0 || jsonLines(t, r.out.String())[0]["state"] != "gone" {
		t.Errorf("exit %d, %q, %s", code, r.out.String(), &r.errs)
	}
}

// suspend makes an agent wait for a child. The limits of the wait and of the child may be 0.
func suspend(t *testing.T, w *queuetest.Taker, limit, timeout time.Duration) (id string) {
	t.Helper()
	id = queuetest.Enqueue(t, w.Q, queue.Task{Kind: "agent"}).ID
	held := w.Take(t, id, "default")
	child := queue.Task{ID: id + ".c", Kind: "k", Queue: "children", Timeout: timeout}
	outcome, err := claim.Of(w.Q).Suspend(t.Context(), claim.Suspension{Agent: id, Epoch: held.Epoch, Worker: w.Worker, Children: []queue.Task{child},
		Wait: claim.Wait{Entry: 1, Digest: "d", Members: []claim.Member{{ID: child.ID}}, Limit: limit}})
	if outcome != nil || err != nil {
		t.Fatal(outcome, err)
	}
	return id
}

func TestAgentsThatCanBeFoundAreListed(t *testing.T) {
	q, url := namespace(t, 0)
	at := " --redis " + url
	if out := expect(t, 0, "", "agent ls"+at); out != "" {
		t.Errorf("without agents: %q", out)
	}
	w := &queuetest.Taker{Q: q, Worker: "w"}
	// An agent whose child has a deadline, one whose wait has a limit, and one with neither.
	bounded, limited, neither := suspend(t, w, 0, time.Hour), suspend(t, w, time.Hour, 0), suspend(t, w, 0, 0)
	code, out, errs := typing(t, "", "agent ls"+at)
	if code != 0 || row(out, bounded) != bounded+" agent default WAITING - 1" || !strings.HasPrefix(row(out, limited), limited+" agent default WAITING 20") || row(out, neither) != "" ||
		errs != "1 waiting agent was not found: their waits and their children have no limit\n" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	code, out, errs = typing(t, "", "agent get "+limited+" 0-NOBODY"+at)
	if code != app.ExitNotFound || !strings.Contains(out, limited+" (agent) is WAITING") || row(out, "mode") != "mode all" || row(out, "members") != "members 1" ||
		row(out, "waits") != "waits for "+limited+".c" || !strings.HasPrefix(row(out, "limit"), "limit 20") || !strings.Contains(errs, "there is no task 0-NOBODY") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if e := jsonLines(t, expect(t, 0, "", "agent get "+bounded+" -o json"+at))[0]; e["why"] != "waiting" || e["wait"].(map[string]any)["members"] != 1.0 {
		t.Errorf("%v", e)
	}
}

// With --look 1 one of two agents whose children have a deadline is found.
func TestAgentsAreLookedForAsFarAsAsked(t *testing.T) {
	server := redistest.Embedded(t)
	w := &queuetest.Taker{Q: queuetest.Open(t, server.Client(), queue.Config{}), Worker: "w"}
	first, second := suspend(t, w, 0, time.Hour), suspend(t, w, 0, 2*time.Hour)
	at := " --redis redis://" + server.Addr()
	code, out, errs := typing(t, "", "agent ls --look 1 -o id"+at)
	if want := "1 waiting agent was not found: it looked at the first deadlines and limits only: look at more with --look\n"; code != 0 || out != first+"\n" || errs != want {
		t.Errorf("exit %d, %q, %q, want %s and %q", code, out, errs, first, want)
	}
	if out := expect(t, 0, "", "agent ls --look 2 -o id"+at); !strings.Contains(out, first+"\n") || !strings.Contains(out, second+"\n") {
		t.Errorf("with --look 2: %q, want %s and %s", out, first, second)
	}
}

func TestWrongUseOfWorkerAndAgentCommandsSaysWhatToDo(t *testing.T) {
	for args, want := range map[string]string{
		"worker stop w":                       "there is no command `curfew worker stop`: write ls, get or drain",
		"worker ls w1":                        `worker ls takes no argument, and got "w1"`,
		"worker ls -o csv":                    `--output "csv" must be table`,
		"worker get":                          "worker get needs the ids of one or more workers",
		"worker drain":                        "worker drain needs the id of one worker",
		"worker drain a b":                    `worker drain takes the id of one worker, and got "b" too`,
		"worker drain a --timeout 5s":         "--timeout needs --wait",
		"worker drain a --wait --timeout 5":   "has no unit: write 5s",
		"worker drain a --wait --timeout -5s": "is negative",
		"worker drain a --wiat":               "(did you mean --wait?)",
		"agent show":                          "there is no command `curfew agent show`: write ls, get or export",
		"agent ls a":                          `agent ls takes no argument, and got "a"`,
		"agent ls --look 0":                   "--look 0 must be from 1 to 100000",
		"agent ls --look all":                 `--look "all" must be a whole number`,
		"agent get":                           "agent get needs the ids of one or more agents",
		"agent get rubbish":                   `"rubbish" is not a task's id`,
		"agent get 0-a -o wide":               `--output "wide" must be text, json or jsonl`,
		"deadlines now":                       `deadlines takes no argument, and got "now"`,
		"deadlines --within 5":                "has no unit: write 5s",
		"deadlines --within -5s":              "is negative",
		"deadlines --buckets 0":               "--buckets 0 must be from 1 to 200",
		"deadlines --by kind":                 `--by "kind" must be queue`,
		"deadlines -o wide":                   `--output "wide" must be table, json or jsonl`,
		"deadlines --overdue --within 5s":     "--overdue lists tasks: leave --within, --buckets and --by out",
		"deadlines --limit 5":                 "--limit needs --by or --overdue",
		"deadlines --overdue --limit 0":       "--limit 0 must be from 1 to 100000",
		"deadlines --overdu":                  "(did you mean --overdue?)",
	} {
		code, out, errs := curfew(t, strings.Fields(args)...)
		if code != app.ExitUsage || !strings.Contains(errs, want) || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("curfew %s: exit %d, stderr %q, stdout %q; want exit 2 and %q", args, code, errs, out, want)
		}
	}
}
