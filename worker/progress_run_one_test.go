package worker_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestProgressIsOnTheRecordAfterRunOne(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, test := range []struct {
			claim   string
			handler func(s *stage, ctx context.Context) error
			want    string
			status  queue.Status
		}{
			{"the newest note", func(s *stage, ctx context.Context) error {
				worker.Progress(ctx, "1 of 2")
				worker.Progress(ctx, "2 of 2")
				return nil
			}, "2 of 2", queue.Completed},
			{"an empty note is ignored", func(s *stage, ctx context.Context) error {
				worker.Progress(ctx, "half")
				worker.Progress(ctx, "")
				return nil
			}, "half", queue.Completed},
			{"no note if Progress was not called", func(*stage, context.Context) error { return nil }, "", queue.Completed},
			{"the note of an attempt that fails", func(_ *stage, ctx context.Context) error {
				worker.Progress(ctx, "half")
				return errors.New("boom")
			}, "half", queue.Pending},
			{"the note of an attempt that panics", func(_ *stage, ctx context.Context) error {
				worker.Progress(ctx, "half")
				panic("boom")
			}, "half", queue.Pending},
			{"the note of an attempt that gives its task back", func(_ *stage, ctx context.Context) error {
				worker.Progress(ctx, "half")
				return worker.Release(0)
			}, "half", queue.Pending},
			{"not the note of an attempt whose task was cancelled", func(s *stage, ctx context.Context) error {
				if _, err := s.q.Cancel(s.ctx, worker.Info(ctx).ID, ""); err != nil {
					s.Error(err)
				}
				worker.Progress(ctx, "half")
				return nil
			}, "", queue.Cancelled},
			{"not the note of an inner handler", func(s *stage, ctx context.Context) error {
				if worker.Info(ctx).Kind == "inner" {
					worker.Progress(ctx, "inner")
					return nil
				}
				inner := worker.New(s.q, worker.Config{})
				inner.HandleRaw("inner", raw(func(ctx context.Context) error { worker.Progress(ctx, "inner"); return nil }))
				s.enqueue(queue.Task{Kind: "inner", Queue: "inner"})
				_, err := inner.RunOne(ctx, "inner")
				return err
			}, "", queue.Completed},
		} {
			t.Run(test.claim, func(t *testing.T) {
				s := newStage(t, rdb, 1)
				w := worker.New(s.q, worker.Config{})
				w.HandleRaw("k", raw(func(ctx context.Context) error { return test.handler(s, ctx) }))
				id := s.enqueue(queue.Task{Kind: "k", MaxRetries: 1})
				s.runOne(w)
				if r := s.record(id); r.Progress != test.want || r.Status != test.status || r.ProgressAt.IsZero() != (test.want == "") {
					t.Errorf("the task is %s with progress %q of %v, want %s, %q", r.Status, r.Progress, r.ProgressAt, test.status, test.want)
				}
				s.noWorkers()
			})
		}
	})
}

func TestProgressIsKeptThoughTheHandlerEndsItsGoroutine(t *testing.T) {
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", raw(func(ctx context.Context) error { worker.Progress(ctx, "half"); runtime.Goexit(); return nil }))
	id, gone := s.enqueue(queue.Task{Kind: "k"}), make(chan struct{})
	go func() { defer close(gone); w.RunOne(s.ctx) }()
	receive(t, gone)
	if r := s.record(id); r.Status != queue.Failed || r.Progress != "half" {
		t.Errorf("the task is %s with progress %q, want FAILED, half", r.Status, r.Progress)
	}
}

func TestALongNoteIsCutBetweenCharacters(t *testing.T) {
	s := newStage(t, shared(t), 1)
	for _, test := range []struct{ claim, note, want string }{
		{"as long as the limit", strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		{"a byte longer", strings.Repeat("x", 1025), strings.Repeat("x", 1024)},
		{"two bytes each, even", strings.Repeat("é", 9000), strings.Repeat("é", 512)},
		{"two bytes each, odd", "x" + strings.Repeat("é", 9000), "x" + strings.Repeat("é", 511)},
		{"three bytes each", strings.Repeat("€", 400), strings.Repeat("€", 341)},
		{"four bytes each, one over", "x" + strings.Repeat("🙂", 400), "x" + strings.Repeat("🙂", 255)},
		{"four bytes each, three over", "xyz" + strings.Repeat("🙂", 400), "xyz" + strings.Repeat("🙂", 255)},
		{"not UTF-8", strings.Repeat("\x80", 2000), strings.Repeat("\x80", 1020)},
		{"a short note with any bytes", "\x00\xff\r\n{}", "\x00\xff\r\n{}"},
	} {
		w := worker.New(s.q, worker.Config{})
		w.HandleRaw("k", raw(func(ctx context.Context) error { worker.Progress(ctx, test.note); return nil }))
		id := s.enqueue(queue.Task{Kind: "k"})
		s.runOne(w)
		if got := s.record(id).Progress; got != test.want {
			t.Errorf("%s: kept %d bytes %.40q…, want %d", test.claim, len(got), got, len(test.want))
		}
	}
	worker.Progress(t.Context(), "outside of a handler") // must do nothing
}
