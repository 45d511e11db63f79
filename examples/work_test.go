package examples_test

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// hostile has all bytes, and what a reader of replies could take for the rest of a reply.
func hostile() string {
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	return "\"\n\"id\"\n\"0-X\"\n2) \"epoch\"\n\\x41\\\\n $(exit) `exit` ' é " + string(all) + "\\\"\n\n"
}

// goWorker runs a worker in Go until the test ends, with a reaper.
func (s *site) goWorker(line string, handlers map[string]string) {
	w := worker.New(s.q, worker.Config{Queues: map[string]int{line: 1}})
	for kind, begin := range handlers {
		w.HandleRaw(kind, func(_ context.Context, payload []byte) ([]byte, error) { return append([]byte(begin), payload...), nil })
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := await.Receive(s, ended, "the worker in Go to end"); err != nil {
			s.Error(err)
		}
	})
}

func eachWorkerRunsTheTasksOfEachProducer(t *testing.T) {
	s := newSite(t, redistest.Shared(t))
	s.goWorker("go", map[string]string{"render": "rendered "})
	lines := []string{"go"}
	for _, l := range languages {
		s.start("", l.worker(l.name, 2)...)
		lines = append(lines, l.name)
	}
	want := "rendered " + hostile()
	var group sync.WaitGroup
	for _, line := range lines {
		for _, l := range languages {
			group.Go(func() {
				if got := s.produce(l, "render", "1m", line, hostile()).await(s); got != want {
					t.Errorf("a task from %s to %s has the result %q, want %q", l.name, line, got, want)
				}
			})
		}
		id := s.enqueue(queue.Task{Kind: "render", Queue: line, Payload: []byte(hostile()), Timeout: time.Minute})
		if got, err := s.q.Result(t.Context(), id); string(got) != want || err != nil {
			t.Errorf("a task from Go to %s has the result %q, %v, want %q", line, got, err, want)
		}
	}
	group.Wait()
	queuetest.Sound(t, s.q)
}

func aTaskOfAKilledWorkerRunsElsewhere(t *testing.T) {
	each(t, languages[:2], func(s *site, l language) { // a lease of the shell's worker is long
		p := s.start("", l.worker("default", 2)...)
		id := s.enqueue(queue.Task{Kind: "hang", Payload: []byte("x"), Timeout: time.Minute})
		s.status(id, queue.Running)
		p.Kill()
		s.goWorker("default", map[string]string{"hang": "again "})
		if result, err := s.q.Result(s.Context(), id); string(result) != "again x" || err != nil {
			s.Errorf("the result is %q, %v", result, err)
		}
	})
}

// Nothing sweeps here: the producer's own calls end the task.
func aTaskOfAKilledWorkerEndsOnItsDeadline(t *testing.T) {
	each(t, languages, func(s *site, l language) {
		p := s.start("", l.worker("default", 2)...)
		s.renders("default")
		producer := s.produce(l, "hang", "6s", "default", "")
		await.Until(s, "the task runs", func() bool {
			workers, err := inspect.Workers(s.Context(), s.q)
			return err == nil && len(workers) == 1 && workers[0].Held == 1
		})
		p.Kill()
		producer.says(s, "FAILED: Task exceeded deadline")
		producer.await(s)
		if producer.Succeeded() {
			s.Error("the producer ended with exit code 0")
		}
	})
}

func aTaskWhoseHandlerHangsEndsOnTime(t *testing.T) {
	each(t, languages, func(s *site, l language) {
		p := s.start("", l.worker("default", 2)...)
		s.renders("default")
		s.goWorker("other", map[string]string{"render": ""}) // it has a reaper
		id := s.enqueue(queue.Task{Kind: "hang", Timeout: 3 * time.Second})
		r := s.status(id, queue.Failed)
		if r.Epoch != 1 || r.Error != "Task exceeded deadline" || !r.CompletedAt.Equal(r.Deadline) || r.TimeoutType != "execution" {
			s.Errorf("the record is %+v", r)
		}
		s.renders("default") // in the other slot; the shell kills its command
		p.Signal(syscall.SIGTERM)
		p.await(s) // nobody waits for such a handler
		if !p.Succeeded() {
			s.Error("the worker did not end with exit code 0")
		}
	})
}

// It does not matter which clock is ahead: that of Redis has ended the task before the worker reports, or the report ends
// it. A clock that is fast makes sure of the second.
func anAttemptStopsWhenItsTimeIsUp(t *testing.T) {
	for _, clock := range []string{"", "fast"} {
		t.Run("clock "+clock, func(t *testing.T) {
			each(t, languages, func(s *site, l language) {
				if clock == "fast" {
					s.hurry()
				}
				s.env = append(s.env, "LEASE_MS=600000") // so that no heartbeat tells it
				p := s.start("", l.worker("default", 1)...)
				s.renders("default")
				id := s.enqueue(queue.Task{Kind: "sleep", Payload: []byte("3600"), Timeout: time.Second})
				p.settles(s, id) // long before the handler would return
				if r := s.status(id, queue.Failed); r.TimeoutType != "execution" || r.Epoch != 1 || r.CompletedAt.After(r.Deadline) {
					s.Errorf("the record is %+v", r)
				}
				s.renders("default")

				limited := s.enqueue(queue.Task{Kind: "sleep", Payload: []byte("3600"), AttemptTimeout: 500 * time.Millisecond})
				p.settles(s, limited)
				if r := s.status(limited, queue.Failed); r.TimeoutType != "attempt" || r.Epoch != 1 {
					s.Errorf("the record is %+v", r)
				}
				s.renders("default")
			})
		})
	}
}

func anAttemptStopsWhenItsTaskIsCancelled(t *testing.T) {
	each(t, languages[:2], func(s *site, l language) { // the shell's worker sends no heartbeats
		s.start("", l.worker("default", 1)...)
		for _, grace := range []time.Duration{0, time.Hour} { // with a grace the worker settles it
			id := s.enqueue(queue.Task{Kind: "sleep", Payload: []byte("3600"), MaxRetries: 3, CancelGrace: grace})
			s.status(id, queue.Running)
			if _, err := s.q.Cancel(s.Context(), id, "not needed"); err != nil {
				s.Fatal(err)
			}
			s.renders("default")
			s.status(id, queue.Cancelled)
		}
	})
}

func sigtermLetsATaskEnd(t *testing.T) {
	each(t, languages, func(s *site, l language) {
		p := s.start("", l.worker("default", 1)...)
		id := s.enqueue(queue.Task{Kind: "sleep", Payload: []byte("2")})
		s.status(id, queue.Running)
		p.Signal(syscall.SIGTERM)
		next := s.enqueue(queue.Task{Kind: "render"})
		p.await(s)
		if !p.Succeeded() {
			s.Error("the worker did not end with exit code 0")
		}
		if r := s.status(id, queue.Completed); string(r.Result) != "slept" {
			s.Errorf("the record is %+v", r)
		}
		s.status(next, queue.Pending)
		if workers, err := inspect.Workers(s.Context(), s.q); len(workers) != 0 || err != nil {
			s.Errorf("workers after the goodbye: %+v, %v", workers, err)
		}
		queuetest.Sound(s, s.q)
	})
}

func aWorkerEndsWhileRedisIsAway(t *testing.T) {
	each(t, languages, func(s *site, l language) {
		s.env = append(s.env, "REDIS_URL=redis://127.0.0.1:1")
		p := s.start("", l.worker("default", 1)...)
		await.Until(s, "the worker finds no Redis", func() bool { return p.said.String() != "" })
		p.terminate(s)
	})
}

func aSecondSIGTERMEndsAWorkerAtOnce(t *testing.T) {
	each(t, languages[:2], func(s *site, l language) { // sh waits for its command
		p := s.start("", l.worker("default", 1)...)
		id := s.enqueue(queue.Task{Kind: "hang"})
		s.status(id, queue.Running)
		p.terminate(s)
		if p.Succeeded() {
			s.Error("the worker ended with exit code 0, as if it had waited")
		}
	})
}

func aWorkerThatIsAskedToStopEnds(t *testing.T) {
	each(t, languages, func(s *site, l language) {
		p := s.start("", l.worker("default", 2)...)
		s.renders("default")
		workers, err := inspect.Workers(s.Context(), s.q)
		if err != nil || len(workers) != 1 {
			s.Fatal(workers, err)
		}
		if err := s.q.StopWorker(s.Context(), workers[0].ID); err != nil {
			s.Fatal(err)
		}
		p.await(s)
		if !p.Succeeded() {
			s.Error("the worker did not end with exit code 0")
		}
	})
}

func aTaskWithoutAHandlerIsGivenBack(t *testing.T) {
	each(t, languages[:2], func(s *site, l language) { // the shell's worker runs all kinds
		p := s.start("", l.worker("default", 2)...)
		id := s.enqueue(queue.Task{Kind: "constructor"})
		p.says(s, id+" PENDING")
		if r := s.status(id, queue.Pending); r.Retries != 0 {
			s.Errorf("the record is %+v", r)
		}
	})
}

func anErrorIsRetried(t *testing.T) {
	each(t, languages, func(s *site, l language) {
		p := s.start("", l.worker("default", 1)...)
		id := s.enqueue(queue.Task{Kind: "sleep", Payload: []byte("x y"), MaxRetries: 1, Backoff: queue.Backoff{Delay: time.Millisecond}})
		p.says(s, id+" PENDING")
		s.goWorker("other", map[string]string{"render": ""}) // its reaper starts the retry
		if r := s.status(id, queue.Failed); r.Retries != 1 || r.Error == "" {
			s.Errorf("the record is %+v", r)
		}
	})
}

func programsGoOnWhenFunctionsOrTheServerWereGone(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	s := newSite(t, server)
	var workers, producers []*program
	var ids []string
	for _, l := range languages {
		workers = append(workers, s.start("", l.worker(l.name, 2)...))
		id := s.enqueue(queue.Task{Kind: "sleep", Payload: []byte("1"), Queue: l.name})
		s.status(id, queue.Running)
		ids = append(ids, id)
	}
	if err := server.Client(t).FunctionFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for _, l := range languages {
		producers = append(producers, s.start("of "+l.name, l.produce("render", "1m", l.name)...))
	}
	for _, p := range append(producers, workers...) {
		p.says(s, "Function not found")
	}
	queuetest.Open(t, server.Client(t), queue.Config{Namespace: s.q.Namespace()}) // as the next program in Go does
	for i, l := range languages {
		if r := s.status(ids[i], queue.Completed); r.Epoch != 1 {
			t.Errorf("the task that ran meanwhile was claimed %d times", r.Epoch)
		}
		if got := s.waiter(l, producers[i]).await(s); got != "rendered of "+l.name {
			t.Errorf("the task that was enqueued meanwhile has the result %q", got)
		}
	}
	server.Restart(t)
	for _, l := range languages {
		s.renders(l.name)
	}
}
