package telemetry

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
)

// run begins all scenes, by both producers, does in each what the script says, and waits until everything has ended.
// It adds to the ledger what must have happened.
func (f *fleet) run(script ledger) {
	f.Helper()
	ids := map[int]string{}
	for i, s := range scenes {
		for n, over := range []string{"go", "http"} {
			if s.act != nil && strings.HasPrefix(s.want, byHand) {
				continue // one after the other, below
			}
			ids[2*i+n] = f.produce(over, s.task)
		}
		script.writeDown(2, s.want)
	}
	for i, s := range scenes {
		for n, over := range []string{"go", "http"} {
			id, begun := ids[2*i+n]
			if !begun {
				id = f.produce(over, s.task)
			}
			if s.act != nil {
				s.act(f, id)
			}
		}
	}
	f.awaitEnds()
}

// awaitEnds waits until all tasks have ended.
func (f *fleet) awaitEnds() {
	f.Helper()
	defer func() {
		if f.Failed() {
			f.Log("not ended: ", f.request("GET", f.serves[1].url+"/api/v1/"+f.Q.Namespace()+"/tasks?status=PENDING,RUNNING,WAITING", ""))
		}
	}()
	f.await("all tasks have ended", func() bool {
		l := f.ledger()
		return l.sum("created") > 0 && l.sum("created") == l.sum("finished")
	})
}

// A producer in Go and one over HTTP, two workers that run commands, a worker for agents, two reapers and two servers play the
// script. In between a worker and a reaper are killed, a server is restarted, and Redis is stopped for two seconds.
// What the script wants is what the event streams and the records have. The metrics of both servers, the log lines and the spans
// have the same numbers.
func TestTheSameNumbersEverywhere(t *testing.T) {
	f, script := newFleet(t), ledger{}
	f.producer = f.role("produce", "The producer is ready")
	agents := f.role("agents", "The worker for agents begins")
	workers := map[string]*member{"first": f.work("first"), "second": f.work("second")}
	reapers := []*member{f.reap("one"), f.reap("other")}
	f.serves = []*member{f.serve("serve"), f.serve("serve")}

	f.run(script)
	f.awaitObserved()
	f.killSome(script, workers, reapers)
	reapers = reapers[1:]
	f.end(f.serves[0])
	f.serves = []*member{f.serves[1], f.serve("serve")}
	f.run(script)
	f.awaitEnds() // who times a task out while Redis is stopped may not hear of it
	paused := f.stopRedis(script)
	f.awaitEnds()

	f.post("workers/hand/heartbeat", object{"known": f.fetches, "claims": []object{}, "lease": "0s"}) // goodbye
	f.tasks.Close()
	await.Receive(t, f.producer.Done(), "the end of the producer")
	f.end(append(reapers, agents)...)
	for _, w := range workers {
		f.end(w)
	}
	f.check(script, paused)
}

// killSome kills a worker that runs a task, and a reaper. The worker has one attempt, which runs again elsewhere, and nothing else
// to say: what it has done is logged and its spans are collected. So nothing but the span of this attempt is missing.
func (f *fleet) killSome(script ledger, workers map[string]*member, reapers []*member) {
	f.Helper()
	marker := f.folder + "/runs"
	id := f.produce("go", sh(fmt.Sprintf("mkdir %s && sleep 60; true", marker), nil))
	script.writeDown(1, shell+"ran default sh; finished default sh COMPLETED -")
	await.Until(f, "the script runs", func() bool { _, err := os.Stat(marker); return err == nil })
	name, _, _ := strings.Cut(f.Record(id).Worker, "-")
	if workers[name] == nil {
		f.Fatalf("%s is run by %q", id, f.Record(id).Worker)
	}
	workers[name].Kill()
	delete(workers, name)
	reapers[0].Kill()
	workers["third"] = f.work("third")
}

// stopRedis stops Redis for two seconds, while a task runs and the time of others is up. It returns the ids of the latter.
func (f *fleet) stopRedis(script ledger) (paused []string) {
	f.Helper()
	const n = 5
	running := f.produce("go", sh("sleep 1", nil))
	script.writeDown(1, shell+"ran default sh; finished default sh COMPLETED -")
	f.awaitStatus(running, queue.Running)
	for range n {
		paused = append(paused, f.produce("go", idleTask(object{"timeout": "1s"})))
	}
	script.writeDown(n, nobody+"timeout nobody idle execution; finished nobody idle FAILED timeout")
	f.redis.Pause()
	harness.Pass(2 * time.Second)
	f.redis.Resume()
	return paused
}

// check compares all sources. The reply of a sweep that was sent to the stopped Redis is lost: the sweep is repeated after
// a second, and the first one has ended the tasks. So the lines and spans of the tasks in paused can be missing, and no others.
func (f *fleet) check(script ledger, paused []string) {
	f.Helper()
	f.awaitIdle()
	t, events := f.T, f.Events(f.Q)
	told := ofEvents(events)
	var ids []string
	for _, e := range events {
		if e.Kind == "task_enqueued" {
			ids = append(ids, e.ID)
		}
	}
	same(t, "the events", told.without("late", "byhand"), "what the script wants", script,
		"created", "finished", "timeout", "again", "woken", "resumed", "released", "ran", "late")
	same(t, "the records", ofRecords(t, f.Records(f.Q, ids)), "the events", told, "created", "finished", "timeout", "timeout-of")
	f.checkMetrics(script, told)

	f.end(f.serves...)
	links := checkLinks(t, f.collector.Spans())
	logs, spans := ofLogs(t, f.logs), ofSpans(f.collector.Spans())
	lines := f.lost(paused, logs, told)
	same(t, "the log lines", logs, "the events", told.less(lines), "timeout", "timeout-of", "resumed", "resumed-by")
	made := f.lost(paused, spans, told)
	same(t, "the spans", spans, "the events", told.less(made), "timeout", "timeout-of", "ran", "ran-of")
	t.Logf("%d tasks, %d timeouts, %d attempts, %d agents woken, %d of them by a timeout; %d spans, %d links; Redis was stopped: %d lines and %d spans are lost",
		told.sum("created"), told.sum("timeout"), told.sum("ran"), told.sum("woken"), told.sum("resumed"), len(f.collector.Spans()), links,
		lines.sum("timeout-of"), made.sum("timeout-of"))
}

// lost returns the entries of timeouts that a source does not have because Redis was stopped.
func (f *fleet) lost(paused []string, source, told ledger) ledger {
	l := ledger{}
	for _, id := range paused {
		if source["timeout-of "+id] == 0 && told["timeout-of "+id] == 1 {
			l.add(1, "timeout-of", id)
			l.add(1, "timeout", "nobody", "idle", "execution")
		}
	}
	return l
}

// less returns the ledger without the entries of another one.
func (l ledger) less(other ledger) ledger {
	rest := ledger{}
	for entry, n := range l {
		if n -= other[entry]; n != 0 {
			rest[entry] = n
		}
	}
	return rest
}

// without returns the ledger without the entries with a word that are not about a queue. Whether a worker still reports an
// attempt whose time was up depends on who notices first.
func (l ledger) without(word, queue string) ledger {
	rest := ledger{}
	for entry, n := range l {
		if words := strings.Fields(entry); words[0] != word || words[1] == queue {
			rest[entry] = n
		}
	}
	return rest
}

// awaitIdle waits until both servers say that nothing is left to do.
func (f *fleet) awaitIdle() {
	f.Helper()
	for _, m := range f.serves {
		var gauges ledger
		defer func() {
			if len(gauges) > 0 {
				f.Logf("%s still has %v", m.name, gauges)
			}
		}()
		f.await(m.name+" has gauges of 0", func() bool {
			_, gauges = ofMetrics(f.T, f.request("GET", m.url+"/metrics", ""))
			return len(gauges) == 0
		})
	}
}

// checkMetrics compares the metrics of both servers.
func (f *fleet) checkMetrics(script, told ledger) {
	f.Helper()
	var first string
	harness.Pass(1100 * time.Millisecond) // a server reads Redis once a second
	for i, m := range f.serves {
		text := f.request("GET", m.url+"/metrics", "")
		l, _ := ofMetrics(f.T, text)
		source := fmt.Sprintf("the metrics of server %d", i+1)
		same(f.T, source, l, "what the script wants", script, "created", "enqueued")
		same(f.T, source, l, "the events", told, "created", "finished", "timeout", "again", "waited", "lag", "woken", "late")
		if first == "" {
			first = totals(text)
		} else if other := totals(text); first != other {
			f.Errorf("the servers have other totals:\n%s\n%s", first, other)
		}
	}
}
