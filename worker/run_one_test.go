package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func done(context.Context, []byte) ([]byte, error) { return []byte("done"), nil }

func (s *stage) runOne(w *worker.Worker, queues ...string) *worker.Ran {
	s.Helper()
	ran, err := w.RunOne(s.ctx, queues...)
	if err != nil {
		s.Fatal(err)
	}
	return ran
}

func TestRunOneRunsOneTask(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStage(t, rdb, 3)
		w := worker.New(s.q, worker.Config{})
		var calls []string
		w.Use(func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, payload []byte) ([]byte, error) {
				calls = append(calls, "around")
				return next(ctx, payload)
			}
		})
		w.HandleRaw("k", func(ctx context.Context, payload []byte) ([]byte, error) {
			calls = append(calls, worker.Info(ctx).ID)
			return payload, nil
		})
		if ran := s.runOne(w); ran != nil {
			t.Errorf("RunOne of an empty queue ran %s, want nil", ran.Claim.ID)
		}
		var ids []string
		for range 3 { // one task in each partition
			ids = append(ids, s.enqueue(queue.Task{Kind: "k", Payload: []byte("p")}))
		}
		for i, id := range ids {
			calls = nil
			ran := s.runOne(w)
			if ran == nil {
				t.Fatalf("RunOne %d returned nil", i)
			}
			want := worker.Ran{Claim: ran.Claim, Report: queue.Outcome{ID: id, Epoch: 1, Verb: queue.Complete, Result: []byte("p")},
				Verdict: queue.Verdict{Word: "OK", Status: queue.Completed}}
			if got := fmt.Sprintf("%+v", *ran); ran.Claim.ID != id || got != fmt.Sprintf("%+v", want) || fmt.Sprint(calls) != fmt.Sprint([]string{"around", id}) {
				t.Errorf("RunOne returned\n%s and called %v, want\n%+v and around, %s", got, calls, want, id)
			}
			if r := s.record(id); r.Status != queue.Completed || string(r.Result) != "p" {
				t.Errorf("%s is %s with %q, want COMPLETED with p", id, r.Status, r.Result)
			}
		}
		if ran := s.runOne(w); ran != nil {
			t.Errorf("RunOne ran %s after all tasks had run", ran.Claim.ID)
		}
		if got, want := w.Stats(), (worker.Stats{Slots: 10, Started: 3, Completed: 3}); got != want {
			t.Errorf("Stats = %+v, want %+v", got, want)
		}
		s.noWorkers()
	})
}

// noWorkers checks that no call of RunOne left a worker or a claim in Redis.
func (s *stage) noWorkers() {
	s.Helper()
	stats, err := s.q.Stats(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	keys, err := s.rdb.Keys(s.ctx, s.q.Namespace()+":*").Result()
	if err != nil {
		s.Fatal(err)
	}
	for _, key := range keys {
		if strings.Contains(key, ":claims:") || strings.Contains(key, ":worker:") {
			s.Errorf("the key %s is left", key)
		}
	}
	if stats.Workers != 0 {
		s.Errorf("%d workers are left in Redis", stats.Workers)
	}
	findings, err := inspect.Audit(s.ctx, s.q)
	if err != nil || len(findings) > 0 {
		s.Errorf("the audit finds %v, %v", findings, err)
	}
}

func TestRunOneTakesFromTheQueuesInOrder(t *testing.T) {
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{Queues: map[string]int{"a": 1, "b": 5, "c": 1}})
	w.HandleRaw("k", done)
	for _, name := range []string{"c", "a", "b", "d"} {
		s.enqueue(queue.Task{Kind: "k", Queue: name})
	}
	var got []string
	for _, named := range [][]string{nil, {"d", "c"}, nil, nil} {
		got = append(got, s.runOne(w, named...).Claim.Queue)
	}
	if want := "[b d a c]"; fmt.Sprint(got) != want {
		t.Errorf("the tasks came from %v, want %s", got, want)
	}
}

func TestRunOneOfAKindWithoutAHandler(t *testing.T) {
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("render", done)
	w.HandleRaw("fetch", done)
	id := s.enqueue(queue.Task{Kind: "mail", MaxRetries: 1})
	ran, err := w.RunOne(s.ctx)
	want := "worker: task " + id + ` has kind "mail", and only these kinds have a handler here: fetch, render; register one with worker.Handle`
	if ran != nil || err == nil || err.Error() != want {
		t.Errorf("RunOne = %v, %v, want nil, %s", ran, err, want)
	}
	r := s.record(id)
	if r.Status != queue.Pending || r.Retries != 0 || r.Held != queue.HeldUnhandled {
		t.Errorf("the task is %s after %d retries, held: %q, want PENDING, 0, unhandled", r.Status, r.Retries, r.Held)
	}
	s.noWorkers()
	other := worker.New(s.q, worker.Config{})
	other.HandleRaw("mail", done)
	if ran := s.runOne(other); ran == nil || ran.Claim.ID != id {
		t.Errorf("RunOne of a worker that has a handler = %+v, want %s", ran, id)
	}
}

func TestRunOneIsForAWorkerThatDoesNotRun(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	if _, err := w.RunOne(s.ctx); err == nil || !strings.Contains(err.Error(), "no handler is registered") {
		t.Errorf("RunOne without a handler = %v", err)
	}
	w.HandleRaw("k", done)
	first, second := s.enqueue(queue.Task{Kind: "k"}), s.enqueue(queue.Task{Kind: "k"})
	if ran := s.runOne(w); ran == nil || ran.Claim.ID != first {
		t.Errorf("RunOne = %+v, want %s", ran, first)
	}
	stop := s.run(w)
	if r := s.ended(second); r.Status != queue.Completed {
		t.Errorf("Run after RunOne: the task is %s", r.Status)
	}
	stop()
	if _, err := w.RunOne(s.ctx); err == nil || !strings.Contains(err.Error(), "after Run") {
		t.Errorf("RunOne after Run = %v", err)
	}
}

// Each of several concurrent calls gets a task of its own.
func TestRunOneCanBeCalledConcurrently(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStage(t, rdb, 2)
		w := worker.New(s.q, worker.Config{})
		var all sync.WaitGroup
		all.Add(8)
		w.HandleRaw("k", raw(func(context.Context) error {
			all.Done()
			all.Wait() // until each call has its task
			return nil
		}))
		for range 8 {
			s.enqueue(queue.Task{Kind: "k"})
		}
		ids := make(chan string, 8)
		for range 8 {
			go func() {
				ran, err := w.RunOne(s.ctx)
				if err != nil || ran == nil || !ran.Verdict.Accepted() {
					t.Errorf("RunOne = %+v, %v", ran, err)
					ids <- ""
					return
				}
				ids <- ran.Claim.ID
			}()
		}
		seen := map[string]bool{}
		for range 8 {
			seen[receive(t, ids)] = true
		}
		if len(seen) != 8 {
			t.Errorf("%d tasks ran, want 8", len(seen))
		}
		s.noWorkers()
	})
}

func TestRunOneStopsItsHandler(t *testing.T) {
	for _, test := range []struct {
		claim string
		task  queue.Task
		end   func(s *stage, id string, cancel context.CancelFunc)
		cause error
		want  queue.Status
		verb  queue.Verb
		taken string // whether the report is accepted; "": either, since two clocks decide
		stray int64  // the running handlers that have lost their claim, when the context has ended; -1: either
	}{
		{"when the task is cancelled", queue.Task{}, func(s *stage, id string, _ context.CancelFunc) {
			s.q.Cancel(context.Background(), id, "enough")
		}, worker.ErrCancelled, queue.Cancelled, queue.Fail, "false", 1},
		{"when its attempt takes too long", queue.Task{AttemptTimeout: 20 * time.Millisecond},
			func(*stage, string, context.CancelFunc) {}, worker.ErrTimeout, queue.Failed, queue.Fail, "", -1},
		{"when the context of RunOne ends", queue.Task{}, func(_ *stage, _ string, cancel context.CancelFunc) { cancel() },
			worker.ErrShutdown, queue.Pending, queue.Release, "true", 0},
	} {
		t.Run(test.claim, func(t *testing.T) {
			redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
				s := newStage(t, rdb, 1)
				w := worker.New(s.q, worker.Config{})
				ctx, cancel := context.WithCancel(s.ctx)
				defer cancel()
				var cause error
				w.HandleRaw("k", raw(func(ctx context.Context) error {
					test.end(s, worker.Info(ctx).ID, cancel)
					select {
					case <-ctx.Done():
						cause = context.Cause(ctx)
						if got := w.Stats(); got.Running != 1 || test.stray >= 0 && got.Stray != test.stray {
							t.Errorf("Stats in the handler = %+v, want 1 running and %d stray", got, test.stray)
						}
						return cause
					case <-time.After(patience):
						return nil
					}
				}))
				test.task.Kind = "k"
				id := s.enqueue(test.task)
				ran, err := w.RunOne(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if !errors.Is(cause, test.cause) || ran.Report.Verb != test.verb || test.taken != "" && fmt.Sprint(ran.Verdict.Accepted()) != test.taken {
					t.Errorf("the context ended with %v, the report was %s, accepted: %v; want %v, %s, %s",
						cause, ran.Report.Verb, ran.Verdict.Accepted(), test.cause, test.verb, test.taken)
				}
				if got := w.Stats(); got.Running != 0 || got.Stray != 0 {
					t.Errorf("Stats after RunOne = %+v, want none running and none stray", got)
				}
				if r := s.record(id); r.Status != test.want || r.Retries != 0 {
					t.Errorf("the task is %s after %d retries, want %s, 0", r.Status, r.Retries, test.want)
				}
				s.noWorkers()
			})
		})
	}
}

func TestRunOneReportsAHandlerThatEndsItsGoroutine(t *testing.T) {
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", raw(func(context.Context) error { runtime.Goexit(); return nil }))
	id := s.enqueue(queue.Task{Kind: "k"})
	gone, returned := make(chan struct{}), false
	go func() {
		defer close(gone)
		w.RunOne(s.ctx)
		returned = true
	}()
	receive(t, gone)
	if r := s.record(id); returned || r.Status != queue.Failed || !strings.Contains(r.Error, "ended its goroutine") {
		t.Errorf("RunOne returned: %v, and the task is %s (%s), want false, FAILED", returned, r.Status, r.Error)
	}
	s.noWorkers()
}
