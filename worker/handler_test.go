package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

type page struct {
	URL   string
	Bytes int
}

// The text of a result is the text that the handler returned: < stays <, and nothing follows the value.
func TestAResultKeepsItsText(t *testing.T) {
	s := newStage(t, redistest.Shared(t).Client(t), 1)
	w := worker.New(s.q, worker.Config{})
	worker.Handle(w, "text", func(context.Context, string) (string, error) { return "a < b && c > d", nil })
	worker.Handle(w, "raw", func(context.Context, string) (json.RawMessage, error) {
		return json.RawMessage(`{"a":"<\u003c>"}`), nil
	})
	worker.Handle(w, "bytes", func(context.Context, string) ([]byte, error) { return []byte("<\xff\n"), nil })
	for kind, want := range map[string]string{"text": `"a < b && c > d"`, "raw": `{"a":"<\u003c>"}`, "bytes": "<\xff\n"} {
		id := s.enqueue(queue.Task{Kind: kind})
		if _, err := w.RunOne(s.ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := s.q.Result(s.ctx, id); string(got) != want {
			t.Errorf("the result of %s is %q, %v, want %q", kind, got, err, want)
		}
	}
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	redistest.Both(t, testHandlers)
}

func testHandlers(t *testing.T, rdb redis.UniversalClient) {
	t.Parallel()
	s := newStage(t, rdb, 1)
	w := worker.New(s.q, worker.Config{})
	worker.Handle(w, "page", func(ctx context.Context, in page) (page, error) {
		return page{URL: in.URL, Bytes: in.Bytes + 1}, nil
	})
	worker.Handle(w, "bytes", func(ctx context.Context, in []byte) ([]byte, error) {
		return append([]byte("got "), in...), nil
	})
	worker.Handle(w, "no-json", func(ctx context.Context, in page) (func(), error) { return func() {}, nil })
	worker.Handle(w, "panic", func(ctx context.Context, in page) (page, error) { panic("the roof is on fire") })
	worker.Handle(w, "goexit", func(ctx context.Context, in page) (page, error) { runtime.Goexit(); return in, nil })
	worker.Handle(w, "huge", func(ctx context.Context, in page) ([]byte, error) { return make([]byte, s.q.MaxBytes()+1), nil })
	worker.Handle(w, "boom", func(ctx context.Context, in page) (page, error) { return in, errors.New("boom") })
	worker.Handle(w, "discard", func(ctx context.Context, in page) (page, error) {
		return in, fmt.Errorf("step 2: %w", worker.Discard(errors.New("boom")))
	})
	worker.Handle(w, "code", func(ctx context.Context, in page) (page, error) { return in, worker.Fail(7, errors.New("boom")) })
	s.run(w)

	for _, c := range []struct {
		claim   string
		task    queue.Task
		status  queue.Status
		result  string
		err     string // is part of the record's error
		reason  queue.Reason
		retries int
		code    int
	}{
		{"JSON in, JSON out", queue.Task{Kind: "page", Payload: []byte(`{"URL":"u","Bytes":1}`)}, queue.Completed, `{"URL":"u","Bytes":2}`, "", "", 0, 0},
		{"without a payload the input is the zero value", queue.Task{Kind: "page"}, queue.Completed, `{"URL":"","Bytes":1}`, "", "", 0, 0},
		{"bytes are passed unchanged", queue.Task{Kind: "bytes", Payload: []byte{0, 0xff}}, queue.Completed, "got \x00\xff", "", "", 0, 0},
		{"a payload that cannot be decoded fails without a retry and names the kind", queue.Task{Kind: "page", Payload: []byte(`{"URL":`), MaxRetries: 3},
			queue.Failed, "", "cannot decode the payload of kind page", "failed", 0, 0},
		{"the error of a payload of the wrong type names no Go type", queue.Task{Kind: "page", Payload: []byte(`{"Bytes":"many"}`)},
			queue.Failed, "", "field Bytes must not be a string", "failed", 0, 0},
		{"a result that cannot be encoded fails without a retry", queue.Task{Kind: "no-json", MaxRetries: 3}, queue.Failed, "", "cannot encode the result of kind no-json as JSON", "failed", 0, 0},
		{"a result that is too large fails without a retry", queue.Task{Kind: "huge", MaxRetries: 3}, queue.Failed, "", "the result has", "failed", 0, 0},
		{"a panic is an error", queue.Task{Kind: "panic"}, queue.Failed, "", "panic: the roof is on fire", "error", 0, 0},
		{"a panic spends retries", queue.Task{Kind: "panic", MaxRetries: 2}, queue.Failed, "", "panic: the roof is on fire", "error", 2, 0},
		{"Goexit is an error", queue.Task{Kind: "goexit", MaxRetries: 1}, queue.Failed, "", "Goexit", "error", 1, 0},
		{"an error is retried MaxRetries times", queue.Task{Kind: "boom", MaxRetries: 2}, queue.Failed, "", "boom", "error", 2, 0},
		{"Discard spends no retry, and can be wrapped", queue.Task{Kind: "discard", MaxRetries: 2}, queue.Failed, "", "step 2: boom", "failed", 0, 0},
		{"Fail keeps its code", queue.Task{Kind: "code"}, queue.Failed, "", "boom", "error", 0, 7},
	} {
		t.Run(c.claim, func(t *testing.T) {
			r := s.ended(s.enqueue(c.task))
			if r.Status != c.status || string(r.Result) != c.result || r.Reason != c.reason || r.Retries != c.retries || r.Code != c.code {
				t.Errorf("the task is %s with result %q, reason %q, code %d after %d retries; want %s, %q, %q, %d, %d; error %q",
					r.Status, r.Result, r.Reason, r.Code, r.Retries, c.status, c.result, c.reason, c.code, c.retries, r.Error)
			}
			for _, inside := range []string{".go", "[running]", "worker_test", "json:", "0x"} {
				if strings.Contains(r.Error, inside) {
					t.Errorf("the error has %q, which shows how the program is built: %s", inside, r.Error)
				}
			}
			if !strings.Contains(r.Error, c.err) || len(r.Error) > 8<<10 {
				t.Errorf("the error has %d bytes, want %q in it, and 8 KiB at most: %s", len(r.Error), c.err, r.Error)
			}
		})
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	jobs := make(chan worker.Job, 2)
	w.HandleRaw("look", raw(func(ctx context.Context) error {
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		job := worker.Info(derived)
		jobs <- job
		if job.Attempt == 1 {
			return errors.New("again")
		}
		return nil
	}))
	id := s.enqueue(queue.Task{Kind: "look", Timeout: time.Hour, AttemptTimeout: time.Minute, MaxRetries: 1, Headers: map[string]string{"trace": "x"}})
	s.run(w)
	first, second := receive(t, jobs), receive(t, jobs)
	if left := time.Until(first.Deadline); left > time.Hour || left < 59*time.Minute {
		t.Errorf("the deadline is %v away, want 1h", left)
	}
	if left := time.Until(first.AttemptDeadline); left > time.Minute || left < 0 {
		t.Errorf("the deadline of the attempt is %v away, want 1m", left)
	}
	// real time: the clocks of this process and of Redis are those of one machine
	if age := time.Since(first.CreatedAt); age > time.Minute || age < -time.Minute {
		t.Errorf("the task was created %v ago", age)
	}
	if first.ID != id || first.Kind != "look" || first.Queue != "default" || first.Headers["trace"] != "x" || first.MaxRetries != 1 {
		t.Errorf("Info = %+v", first)
	}
	if first.Attempt != 1 || second.Attempt != 2 || second.Retries != 1 || second.Epoch <= first.Epoch {
		t.Errorf("attempts %d and %d, epochs %d and %d", first.Attempt, second.Attempt, first.Epoch, second.Epoch)
	}
	if job := worker.Info(context.Background()); job.ID != "" {
		t.Errorf("outside of a handler Info = %+v, want the zero Job", job)
	}
}

func TestRetryAfterWaits(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	calls := make(chan time.Time, 2)
	w.HandleRaw("later", raw(func(ctx context.Context) error {
		calls <- time.Now()
		if worker.Info(ctx).Attempt == 1 {
			return worker.RetryAfter(300*time.Millisecond, errors.New("not yet"))
		}
		return nil
	}))
	id := s.enqueue(queue.Task{Kind: "later", MaxRetries: 1})
	s.run(w)
	first, second := receive(t, calls), receive(t, calls)
	if d := second.Sub(first); d < 300*time.Millisecond || d > 3*time.Second {
		t.Errorf("the task ran again after %v, want 300ms", d)
	}
	if r := s.ended(id); r.Status != queue.Completed || r.Retries != 1 {
		t.Errorf("the task is %s after %d retries, want COMPLETED after 1", r.Status, r.Retries)
	}
}

func TestReleaseSpendsNoRetry(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	var calls atomic.Int64
	w.HandleRaw("shy", raw(func(ctx context.Context) error {
		if calls.Add(1) <= 3 {
			return worker.Release(time.Millisecond)
		}
		return nil
	}))
	r := s.ended(func() string { id := s.enqueue(queue.Task{Kind: "shy"}); s.run(w); return id }())
	if r.Status != queue.Completed || r.Retries != 0 || r.Epoch != 4 {
		t.Errorf("the task is %s after %d retries and %d claims, want COMPLETED after 0 and 4", r.Status, r.Retries, r.Epoch)
	}
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	mark := func(name string) func(worker.Handler) worker.Handler {
		return func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, payload []byte) ([]byte, error) {
				result, err := next(ctx, append(payload, name...))
				return append(result, name...), err
			}
		}
	}
	w.Use(mark("1"), mark("2"))
	w.HandleRaw("echo", func(_ context.Context, payload []byte) ([]byte, error) { return append(payload, '|'), nil })
	w.Use(mark("3"))
	id := s.enqueue(queue.Task{Kind: "echo"})
	s.run(w)
	if got := string(s.ended(id).Result); got != "123|321" {
		t.Errorf("the result is %q, want 123|321: the first middleware is the outermost", got)
	}
}
