package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/vocabulary"
	"github.com/curfew-dev/curfew/queue"
)

// Each command that prints JSON uses the names of the vocabulary, with their types.
func TestTheJSONOfEachCommandUsesTheVocabulary(t *testing.T) {
	q, url := namespace(t, 0)
	lives(t, q, "w1", queue.WorkerRunning, `{"name":"n","host":"h","pid":1,"concurrency":2,"queues":{"a":1},"kinds":["k"],"started_at":1800000000000}`)
	w := &queuetest.Taker{Q: q, Worker: "w"}
	task := queue.Task{Kind: "k", Queue: "a", Payload: []byte("{}"), Timeout: time.Hour, Headers: map[string]string{"x": "y"}}
	done := queuetest.Enqueue(t, q, task).ID
	w.Settle(t, queue.Outcome{ID: done, Epoch: w.Take(t, done, "a").Epoch, Verb: queue.Fail, Error: "no"})
	task.Queue = "b"
	agent := queuetest.Enqueue(t, q, task).ID
	held := w.Take(t, agent, "b")
	child := queuetest.Enqueue(t, q, queue.Task{ID: agent + ".c", Kind: "approval", Promise: true, Timeout: time.Minute}).ID
	if _, err := claim.Of(q).Suspend(t.Context(), claim.Suspension{Agent: agent, Epoch: held.Epoch, Worker: "w", Note: claim.Note{Entries: []claim.Entry{{Number: 1, Text: []byte("step s\n1")}}},
		Wait: claim.Wait{Entry: 2, Digest: "d", Mode: queue.WaitAll, Reason: "why", Limit: time.Minute, Members: []claim.Member{{ID: child}}}}); err != nil {
		t.Fatal(err)
	}
	queuetest.Enqueue(t, q, queue.Task{Kind: "k", Queue: "emial", Delay: time.Hour})
	ready := queuetest.Enqueue(t, q, queue.Task{Kind: "k", Queue: "emial"}).ID
	startRun(t, q)
	prints(t, "queue limit a --rate 5/1s --burst 3 --running 4 --redis "+url)
	prints(t, "kind set k --timeout 1m --redis "+url)
	for _, args := range []string{
		"flow ls", "flow get 0-RUN", "flow put " + definitionFile, "flow check " + definitionFile, "flow runs publish",
		"ls", "ls --hide-payloads", "ls --status FAILED,PENDING", "ls --agent " + agent, "queue ls", "queue get a emial", "kind ls", "kind get k", "worker ls", "worker get w1",
		"agent ls", "agent get " + agent, "deadlines", "explain " + agent, "explain " + done, "get " + agent, "get " + agent + " --hide-payloads", "get " + ready, "events", "doctor", "fsck",
		"namespace ls curfew", "namespace set curfew --event-mib 5", "version", "cancel --all-matching --dry-run", "queue pause a", "queue resume a", "cancel " + ready, "retry " + done, "wait " + done,
	} {
		for _, format := range []string{"json", "jsonl"} {
			at := " --redis " + url
			if args == "version" || strings.HasPrefix(args, "flow check") {
				at = ""
			}
			_, out, errs := typing(t, "", args+" -o "+format+at)
			if out == "" && args != "fsck" { // it prints a line for each finding
				t.Errorf("%s -o %s prints nothing: %s", args, format, errs)
			}
			for line := range strings.Lines(out) {
				var value any
				if err := json.Unmarshal([]byte(line), &value); err != nil {
					t.Errorf("%s -o %s: %v in %.200s", args, format, err, line)
					continue
				}
				list, is := value.([]any)
				if !is {
					list = []any{value}
				}
				for _, one := range list {
					object, is := one.(map[string]any)
					if !is {
						t.Errorf("%s -o %s prints %.100s, which is no object", args, format, fmt.Sprint(one))
					} else if err := vocabulary.CheckJSON(object); err != nil {
						t.Errorf("%s -o %s: %v in %.300s", args, format, err, line)
					}
				}
			}
		}
	}
}
