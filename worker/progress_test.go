package worker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// noter starts a worker and enqueues a task for it. The handler passes each note that it receives from
// notes to Progress, each in a goroutine of its own. It returns when notes is closed.
func (s *stage) noter(config worker.Config, task queue.Task) (id string, notes chan<- string) {
	input, started := make(chan string), make(chan bool)
	w := worker.New(s.q, config)
	w.HandleRaw(task.Kind, raw(func(ctx context.Context) error {
		started <- true
		for {
			select {
			case note, more := <-input:
				if !more {
					return nil
				}
				called := make(chan bool)
				go func() { defer close(called); worker.Progress(ctx, note) }()
				<-called
			case <-s.ctx.Done(): // the test has failed
				return nil
			}
		}
	}))
	s.run(w)
	id = s.enqueue(task)
	receive(s, started)
	return id, input
}

// noted waits until the record of a task has a note, and returns the record.
func (s *stage) noted(id, note string) *queue.Record {
	s.Helper()
	var r *queue.Record
	await.Until(s, "the record has the note "+note, func() bool { r = s.record(id); return r.Progress == note })
	return r
}

func TestProgressIsSeenByOthersAndMovesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	other := reopen(t, s.q) // like another process
	id, notes := s.noter(worker.Config{Beat: 20 * time.Millisecond},
		queue.Task{Kind: "k", Timeout: time.Hour, AttemptTimeout: 30 * time.Minute, MaxRetries: 1})
	s.q = other
	before := s.record(id)
	if before.Progress != "" || !before.ProgressAt.IsZero() {
		t.Errorf("before the first note the record has progress %q at %v, want none", before.Progress, before.ProgressAt)
	}
	notes <- "10%"
	first := s.noted(id, "10%")
	for n := 11; n < 60; n++ {
		notes <- fmt.Sprint(n, "%")
	}
	second := s.noted(id, "59%")
	if first.ProgressAt.Before(first.StartedAt) || second.ProgressAt.Before(first.ProgressAt) {
		t.Errorf("started at %v, notes of %v and %v: want that order", first.StartedAt, first.ProgressAt, second.ProgressAt)
	}
	// No other field changes, in particular no deadline or limit.
	fields := maps.Clone(second.Fields)
	delete(fields, "progress")
	delete(fields, "progress_at")
	if !maps.Equal(fields, before.Fields) {
		t.Errorf("progress changed the record from\n%v to\n%v", before.Fields, fields)
	}
	close(notes)
	if r := s.ended(id); r.Status != queue.Completed || r.Progress != "59%" || !r.ProgressAt.Equal(second.ProgressAt) {
		t.Errorf("the task ended as %s with the note %q of %v, want COMPLETED with the last note", r.Status, r.Progress, r.ProgressAt)
	}
}

func TestAHeartbeatSendsOnlyANewNote(t *testing.T) {
	t.Parallel()
	var id atomic.Pointer[string]
	var beats, first, second atomic.Int64
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if task := id.Load(); task != nil && has(cmd, *task) && len(cmd.Args()) > 6 { // not the test's own read of the record
			beats.Add(1)
		}
		switch {
		case has(cmd, "first"):
			first.Add(1)
		case !has(cmd, "second"):
		case second.Add(1) == 1: // the heartbeat fails and never arrives
			cmd.SetErr(raised("ERR something is wrong"))
			return cmd.Err()
		case second.Load() == 2: // the heartbeat arrives, and its reply is lost
			next(ctx, cmd)
			cmd.SetErr(errors.New("cut"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	})
	s := newStage(t, rdb, 1)
	task, notes := s.noter(worker.Config{Beat: 10 * time.Millisecond}, queue.Task{Kind: "k"})
	id.Store(&task)
	someBeats := func() {
		t.Helper()
		from := beats.Load()
		await.Until(t, "there are more heartbeats", func() bool { return beats.Load() >= from+6 })
	}
	notes <- "first"
	s.noted(task, "first")
	someBeats()
	notes <- "first"
	someBeats()
	if n := first.Load(); n != 1 {
		t.Errorf("the first note was sent %d times, want once", n)
	}
	notes <- "second"
	await.Until(t, "the second note is answered", func() bool { return second.Load() >= 3 })
	at := s.noted(task, "second").ProgressAt
	someBeats()
	if n := second.Load(); n != 3 {
		t.Errorf("the second note was sent %d times, want 3: one was lost, and the reply to one was lost", n)
	}
	notes <- ""
	someBeats()
	if r := s.record(task); r.Progress != "second" || !r.ProgressAt.Equal(at) {
		t.Errorf("after an empty note the record has %q of %v, want second of %v", r.Progress, r.ProgressAt, at)
	}
	close(notes)
	s.ended(task)
}

// A worker is cut off until its task runs in another worker. Its heartbeat then arrives, and its note
// is not written to the record.
func TestProgressOfALostClaimIsIgnored(t *testing.T) {
	t.Parallel()
	caught, release, answered := make(chan bool, 1), make(chan bool), make(chan bool, 1)
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if !has(cmd, "of the first") {
			return next(ctx, cmd)
		}
		caught <- true
		<-release
		defer func() { answered <- true }()
		return next(ctx, cmd)
	})
	s := newStage(t, rdb, 1)
	// Its only slot is in use, so the worker does not fetch: a fetch would renew its lease.
	first := worker.New(s.q, worker.Config{Concurrency: 1, Lease: time.Second, Beat: 20 * time.Millisecond})
	var cause error
	first.HandleRaw("k", raw(func(ctx context.Context) error {
		worker.Progress(ctx, "of the first")
		<-ctx.Done()
		cause = context.Cause(ctx)
		return cause
	}))
	stop := s.run(first)
	id := s.enqueue(queue.Task{Kind: "k"})
	receive(t, caught)

	s.q, s.rdb = reopen(t, s.q), shared(t)
	second, leave := worker.New(s.q, worker.Config{Lease: time.Minute, Beat: 20 * time.Millisecond}), make(chan bool)
	second.HandleRaw("k", raw(func(ctx context.Context) error { worker.Progress(ctx, "of the second"); <-leave; return nil }))
	s.run(second)
	before := s.noted(id, "of the second")
	close(release)
	receive(t, answered)
	if r := s.record(id); !maps.Equal(r.Fields, before.Fields) {
		t.Errorf("after the heartbeat of the first worker the record is\n%v, want\n%v", r.Fields, before.Fields)
	}
	await.Until(t, "the first attempt is stopped", func() bool { return first.Stats().Stopped == 1 && first.Stats().Running == 0 })
	close(leave)
	if r := s.ended(id); r.Progress != "of the second" || r.Epoch != 2 {
		t.Errorf("the task ended with progress %q and epoch %d, want those of the second attempt", r.Progress, r.Epoch)
	}
	stop()
	if !errors.Is(cause, worker.ErrClaimLost) {
		t.Errorf("the cause of the first handler's context is %v, want %v", cause, worker.ErrClaimLost)
	}
}

// reopen opens a namespace again, as another process does.
func reopen(t *testing.T, q *queue.Queue) *queue.Queue {
	t.Helper()
	other, err := queue.Open(t.Context(), shared(t), queue.Config{Namespace: q.Namespace(), Logger: q.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	return other
}
