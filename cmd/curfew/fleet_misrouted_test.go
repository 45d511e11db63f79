package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// lives makes a worker live that tells what it serves. about is "" for one that tells nothing.
func lives(t *testing.T, q *queue.Queue, worker string, state queue.WorkerState, about string) {
	t.Helper()
	for p := range q.Partitions() {
		if _, err := claim.Of(q).Heartbeat(t.Context(), p, worker, time.Hour, 0, nil); err != nil {
			t.Fatal(err)
		}
		if about != "" {
			if err := claim.Of(q).Describe(t.Context(), p, worker, state, about); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ls, queue ls and kind ls say which work no worker takes, on stderr, so that the output stays what it is.
func TestListsTellOfMisroutedWork(t *testing.T) {
	q, url := namespace(t, 0)
	at := " --redis " + url
	for range 2 {
		queuetest.Enqueue(t, q, queue.Task{Kind: "letter", Queue: "emial"})
	}
	queuetest.Enqueue(t, q, queue.Task{Kind: "leter", Queue: "email"})
	queuetest.Enqueue(t, q, queue.Task{Kind: "letter", Queue: "email"})
	queuetest.Enqueue(t, q, queue.Task{Kind: "letter", Queue: "old"})
	queuetest.Enqueue(t, q, queue.Task{Kind: "approval", Queue: "nobody", Promise: true, Timeout: time.Hour})
	says := func(args string, want ...string) {
		t.Helper()
		code, out, errs := typing(t, "", args+at)
		for _, sentence := range want {
			if !strings.Contains(errs, sentence+"\n") {
				t.Errorf("%s says %q, want %q", args, errs, sentence)
			}
		}
		if n := strings.Count(errs, "worker"); code != 0 || n != strings.Count(strings.Join(want, " "), "worker") || strings.Contains(out, "did you mean") {
			t.Errorf("%s: exit %d, %d times worker in %q, %s", args, code, n, errs, out)
		}
	}
	says("ls", "no worker lives: 5 tasks wait for one")
	says("queue ls", "no worker lives: 5 tasks are in line")
	lives(t, q, "w1", queue.WorkerRunning, `{"queues":{"email":1},"kinds":["letter"]}`)
	lives(t, q, "w2", queue.WorkerDraining, `{"queues":{"old":1},"kinds":["letter"]}`)
	says("ls", "no live worker serves queue emial (did you mean email?): 2 tasks wait for one",
		"no live worker that serves queue email handles the kind leter (did you mean letter?): 1 task waits for one",
		"the workers that serve queue old are draining, and take no more tasks: 1 task waits for one")
	says("ls --queue emial -o id", "no live worker serves queue emial (did you mean email?): 2 tasks wait for one")
	says("ls --queue email --kind letter")
	says("ls --queue nobody")
	if _, _, errs := typing(t, "", "ls --queue emali"+at); !strings.Contains(errs, "there is no queue \"emali\" in this namespace (did you mean email?): `curfew queue ls` lists the queues\n") {
		t.Errorf("ls of an unknown queue says %q", errs)
	}
	if _, _, errs := typing(t, "", "ls --queue nobody --kind k"+at); strings.Contains(errs, "no queue") {
		t.Errorf("ls of a queue without tasks that match says %q", errs)
	}
	says("queue ls", "no live worker serves queue emial (did you mean email?): 2 tasks are in line", "the workers that serve queue old are draining, and take no more tasks: 1 task is in line")

	out := prints(t, "queue ls"+at)
	for _, want := range []string{"email 2 0 0 0 1 -", "emial 2 0 0 0 0 -", "old 1 0 0 0 0 -"} {
		if got := row(out, strings.Fields(want)[0]); !strings.HasPrefix(got, want) {
			t.Errorf("queue ls has %q, want %q", got, want)
		}
	}
	if lines := jsonLines(t, expect(t, 0, "", "queue get email emial -o json"+at)); lines[0]["workers"] != 1.0 || lines[1]["workers"] != 0.0 {
		t.Errorf("%v", lines)
	}
	if out := expect(t, 0, "", "kind ls"+at); row(out, "letter") != "letter 0 0 0 0 2 - -" {
		t.Errorf("kind ls prints %s", out)
	}
	queuetest.Enqueue(t, q, queue.Task{Kind: "letter", Queue: "email", Delay: time.Hour})
	if _, _, errs := typing(t, "", "queue ls"+at); !strings.HasSuffix(errs, "\n1 task is delayed or given back, and in no line: `curfew ls --status PENDING` lists them\n") {
		t.Errorf("queue ls says %q", errs)
	}
	lives(t, q, "w3", "", "") // it may serve anything
	says("ls")
	says("queue ls")
	if lines := jsonLines(t, expect(t, 0, "", "queue get emial -o json"+at)); lines[0]["workers"] != nil {
		t.Errorf("%v", lines)
	}
}

// Of many queues without a worker ten are named.
func TestAListNamesTenMisroutedQueues(t *testing.T) {
	q, url := namespace(t, 0)
	for i := range 13 {
		queuetest.Enqueue(t, q, queue.Task{Kind: "k", Queue: fmt.Sprint("line", i)})
	}
	lives(t, q, "w1", queue.WorkerRunning, `{"queues":{"email":1},"kinds":["letter"]}`)
	for _, args := range []string{"ls", "queue ls"} {
		if _, _, errs := typing(t, "", args+" --redis "+url); strings.Count(errs, "no live worker serves queue line") != 10 || !strings.Contains(errs, "more") {
			t.Errorf("%s says %s", args, errs)
		}
	}
}

func TestNamespaceSettingsAreChanged(t *testing.T) {
	server := redistest.Start(t)
	url := " --redis redis://" + server.Addr
	code, out, errs := typing(t, "", "namespace create shop --partitions 2"+url)
	if code != 0 || !strings.HasPrefix(out, "shop  created") || errs != "" || len(functions(t, server.Client(t))) == 0 {
		t.Errorf("create: exit %d, %q, %q", code, out, errs)
	}
	if _, _, errs := typing(t, "", "namespace create shop"+url); errs != "" {
		t.Errorf("create again says %q", errs)
	}
	expect(t, 0, "shop  events all, 64 MiB of events a partition, figures on (before: events terminal, 64 MiB, figures on)\n", "namespace set shop --events all"+url)
	expect(t, 0, "shop  events all, 9 MiB of events a partition, figures off (before: events all, 64 MiB, figures on)\n", "namespace set shop --event-mib 9 --figures off"+url)
	expect(t, 0, "shop  events all, 9 MiB of events a partition, figures off\n", "namespace set shop --events all"+url)
	if line := jsonLines(t, expect(t, 0, "", "namespace set shop --events none -o json"+url))[0]; line["changed"] != true || line["events"] != "none" || line["partitions"] != 2.0 {
		t.Errorf("%v", line)
	}
	expect(t, 0, "shop  exists: 2 partitions, events none, 9 MiB", "namespace create shop --events none"+url)
	expect(t, 3, "(did you mean shop?): `curfew namespace ls` lists them", "namespace set shopp --events all"+url)
	if n := server.Client(t).Exists(t.Context(), "shopp:{0}").Val(); n != 0 {
		t.Error("a mistyped namespace was created")
	}
	expect(t, 1, "`curfew namespace set shop` changes the other settings", "namespace create shop --events all"+url)

	// For a user who may not load functions, a note says what to run.
	admin := server.Client(t)
	admin.FunctionFlush(t.Context())
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "producer", "on", ">secret", "~*", "&*", "+@all", "-function").Err(); err != nil {
		t.Fatal(err)
	}
	code, out, errs = typing(t, "", "namespace create mine --redis redis://producer:secret@"+server.Addr)
	if code != 0 || !strings.HasPrefix(out, "mine  created") || !strings.Contains(errs, "`curfew functions load`") || strings.Contains(errs, "secret") {
		t.Errorf("create without the right: exit %d, %q, %q", code, out, errs)
	}
}

// The flag --hide-payloads works on all commands that print what users have put into tasks.
func TestHidePayloadsWorksOnEachCommand(t *testing.T) {
	q, url := namespace(t, 0)
	at := " --redis " + url
	task := queue.Task{Kind: "k", Queue: "a", Payload: []byte(`"s3cret"`), Headers: map[string]string{"h": "s3cret"}, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}}
	ids := []string{}
	for i, o := range []queue.Outcome{{Verb: queue.Complete, Result: []byte("s3cret")}, {Verb: queue.Fail, Class: queue.ClassFailed, Error: "s3cret"},
		{Verb: queue.Fail, Error: "s3cret", Delay: time.Hour}, {Verb: queue.Release, Error: "s3cret", Delay: time.Hour}} {
		task.Queue = fmt.Sprint("q", i)
		o.ID = queuetest.Enqueue(t, q, task).ID
		w := &queuetest.Taker{Q: q, Worker: "w" + task.Queue}
		o.Epoch = w.Take(t, o.ID, task.Queue).Epoch
		w.Settle(t, o)
		ids = append(ids, o.ID)
	}
	if err := q.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: q.EventsKey(0), Values: []any{"note", "s3cret"}}).Err(); err != nil {
		t.Fatal(err)
	}
	commands := []string{"ls -o wide", "ls -o json", "ls -o jsonl", "export", "events", "events -o json"}
	for _, id := range ids {
		commands = append(commands, "get "+id, "get "+id+" --full", "get "+id+" -o json")
	}
	for _, id := range ids[1:] {
		commands = append(commands, "explain "+id, "explain "+id+" -o json")
	}
	for _, args := range commands {
		if out := prints(t, args+at); !strings.Contains(out, "s3cret") {
			t.Errorf("%s does not print the secret, so that this test shows nothing:\n%s", args, out)
		}
		if out := prints(t, args+" --hide-payloads"+at); strings.Contains(out, "s3cret") || out == "" {
			t.Errorf("%s --hide-payloads prints\n%s", args, out)
		}
	}
}

// prints runs a command that must succeed and may say something on stderr, and returns its output.
func prints(t *testing.T, args string) string {
	t.Helper()
	code, out, errs := typing(t, "", args)
	if code != 0 {
		t.Errorf("curfew %s: exit %d, %s", args, code, errs)
	}
	return out
}

func functions(t *testing.T, rdb *redis.Client) []redis.Library {
	t.Helper()
	all, err := rdb.FunctionList(t.Context(), redis.FunctionListQuery{LibraryNamePattern: "curfew"}).Result()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
