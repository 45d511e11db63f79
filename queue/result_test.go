package queue_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// answer is what Result returned.
type answer struct {
	result string
	err    error
}

// wait waits for a result in another goroutine.
func wait(ctx context.Context, q *queue.Queue, id string) <-chan answer {
	got := make(chan answer, 1)
	go func() {
		result, err := q.Result(ctx, id)
		got <- answer{string(result), err}
	}()
	return got
}

// soon returns the answer.
func soon(t *testing.T, got <-chan answer) answer {
	t.Helper()
	return await.Receive(t, got, "Result returns")
}

func TestResultReturnsTheResultOfTheTask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		for range 5 { // in several partitions
			ctx, w := context.Background(), &queuetest.Taker{Q: q, Worker: queue.NewCall()}
			id := queuetest.Enqueue(t, q, queue.Task{Kind: "render", Timeout: time.Hour}).ID
			got := wait(ctx, q, id)
			untilWatched(t, q.Client(), q, id)
			claim := w.Take(t, id, "default")
			w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Complete, Result: []byte("result")})
			if a := soon(t, got); a != (answer{result: "result"}) {
				t.Errorf("Result = %+v", a)
			}
			if again, err := q.Result(ctx, id); string(again) != "result" || err != nil {
				t.Errorf("Result again = %q, %v", again, err)
			}
		}
	})
}

func TestResultOfAFailedTask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		w := &queuetest.Taker{Q: q, Worker: "w"}
		id := queuetest.Enqueue(t, q, queue.Task{Kind: "render", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}}).ID
		got := wait(context.Background(), q, id)
		untilWatched(t, q.Client(), q, id)
		claim := w.Take(t, id, "default")
		w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Fail, Error: "first"}) // the task is retried
		claim = w.Take(t, id, "default")
		w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Fail, Error: "no paper", Code: 3})
		a := soon(t, got)
		var failed *queue.TaskFailedError
		if !errors.As(a.err, &failed) {
			t.Fatalf("Result = %+v, want a *TaskFailedError", a)
		}
		if failed.TaskID != id || failed.Kind != "render" || failed.Reason != "error" || failed.Code != 3 {
			t.Errorf("the error is %+v", failed)
		}
		if want := fmt.Sprintf("Task 'render' (id=%s) failed: no paper", id); a.err.Error() != want {
			t.Errorf("its text is %q, want %q", a.err, want)
		}
	})
}

func TestResultOfACancelledTask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		id := queuetest.Enqueue(t, q, queue.Task{}).ID
		got := wait(context.Background(), q, id)
		untilWatched(t, q.Client(), q, id)
		if _, err := q.Cancel(context.Background(), id, "no need"); err != nil {
			t.Fatal(err)
		}
		if a := soon(t, got); !errors.Is(a.err, refusal.ErrCancelled) || !strings.Contains(a.err.Error(), "no need") {
			t.Errorf("Result = %+v, want ErrCancelled and why", a)
		}
	})
}

func TestResultOfAnUnknownTask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		if a := soon(t, wait(context.Background(), q, unknown)); !errors.Is(a.err, refusal.ErrNotFound) {
			t.Errorf("Result = %+v, want ErrNotFound", a)
		}
	})
}

// No reaper runs here. So Result must check the task when its time is up, for each kind of time limit.
func TestResultIsNotLateWithoutAReaper(t *testing.T) {
	run := func(t *testing.T, q *queue.Queue, task queue.Task) string {
		id := queuetest.Enqueue(t, q, task).ID
		(&queuetest.Taker{Q: q, Worker: queue.NewCall()}).Take(t, id, "default")
		return id
	}
	const short = 50 * time.Millisecond
	rows := []struct {
		claim, kind string
		begin       func(*testing.T, *queue.Queue) string
	}{
		{"a timeout in line", "execution", func(t *testing.T, q *queue.Queue) string {
			return queuetest.Enqueue(t, q, queue.Task{Timeout: short}).ID
		}},
		{"a timeout while it runs", "execution", func(t *testing.T, q *queue.Queue) string {
			return run(t, q, queue.Task{Timeout: 6 * short})
		}},
		{"a deadline", "execution", func(t *testing.T, q *queue.Queue) string {
			return queuetest.Enqueue(t, q, queue.Task{Deadline: time.Now().Add(2 * short)}).ID
		}},
		{"its owner's deadline", "workflow", func(t *testing.T, q *queue.Queue) string {
			return queuetest.Enqueue(t, q, queue.Task{ID: queuetest.Enqueue(t, q, queue.Task{Timeout: 2 * short}).ID + ".child"}).ID
		}},
		{"a queue timeout", "queue", func(t *testing.T, q *queue.Queue) string {
			return queuetest.Enqueue(t, q, queue.Task{QueueTimeout: short}).ID
		}},
		{"a queue timeout before the deadline", "queue", func(t *testing.T, q *queue.Queue) string {
			return queuetest.Enqueue(t, q, queue.Task{QueueTimeout: short, Timeout: time.Hour}).ID
		}},
		{"an attempt timeout", "attempt", func(t *testing.T, q *queue.Queue) string {
			return run(t, q, queue.Task{AttemptTimeout: short})
		}},
	}
	texts := map[string]string{"attempt": "Task exceeded attempt timeout", "queue": "Task exceeded queue timeout"}
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		for _, row := range rows {
			t.Run(row.claim, func(t *testing.T) {
				id := row.begin(t, q)
				a := soon(t, wait(t.Context(), q, id))
				var late *queue.TaskTimedOutError
				if !errors.As(a.err, &late) {
					q.Cancel(context.Background(), id, "") // so that the next row does not claim it
					t.Fatalf("Result = %q, %v, want a *TaskTimedOutError", a.result, a.err)
				}
				if late.TaskID != id || string(late.Type) != row.kind {
					t.Errorf("the error is %+v, want type %s", late, row.kind)
				}
				if want := "Task timed out: " + id + ": " + cmp.Or(texts[row.kind], "Task exceeded deadline"); a.err.Error() != want {
					t.Errorf("its text is %q, want %q", a.err, want)
				}
				if errors.Is(a.err, refusal.ErrWaitOver) {
					t.Errorf("the timeout of the task looks like the end of the caller's context: %v", a.err)
				}
			})
		}
	})
}

func TestResultEndsWithItsContext(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		id := queuetest.Enqueue(t, q, queue.Task{}).ID
		over := errors.New("no longer needed")
		ctx, cancel := context.WithCancelCause(context.Background())
		got := wait(ctx, q, id)
		untilWatched(t, q.Client(), q, id)
		cancel(over)
		if a := soon(t, got); !errors.Is(a.err, over) || !errors.Is(a.err, refusal.ErrWaitOver) {
			t.Errorf("Result = %+v, want the context's cause and ErrWaitOver", a)
		}
		if r, err := q.Get(context.Background(), id); err != nil || r.Status != queue.Pending {
			t.Errorf("Get = %+v, %v, want it to be still PENDING", r, err)
		}
	})
}

func TestAHundredCallersWaitForOneTask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx, w := context.Background(), &queuetest.Taker{Q: q, Worker: "w"}
		id := queuetest.Enqueue(t, q, queue.Task{}).ID
		var all []<-chan answer
		for range 100 {
			all = append(all, wait(ctx, q, id))
		}
		untilWatched(t, q.Client(), q, id)
		if got := queuetest.Subscriptions(t, q); got != q.Partitions() {
			t.Errorf("100 callers have %d subscriptions, want one for each of %d partitions", got, q.Partitions())
		}
		claim := w.Take(t, id, "default")
		w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Complete, Result: []byte("result")})
		for _, got := range all {
			if a := soon(t, got); a != (answer{result: "result"}) {
				t.Errorf("Result = %+v", a)
			}
		}
		await.Until(t, "no subscription is left", func() bool { return queuetest.Subscriptions(t, q) == 0 })
	})
}

func TestResultLeavesNothingBehind(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		before := goleak.IgnoreCurrent()
		id := queuetest.Enqueue(t, q, queue.Task{}).ID
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				for i := range 5 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
					if _, err := q.Result(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Result = %v, want context.DeadlineExceeded", err)
					}
					cancel()
				}
			})
		}
		group.Wait()
		await.Until(t, "no subscription is left", func() bool { return queuetest.Subscriptions(t, q) == 0 })
		const peer = "github.com/alicebob/miniredis/v2/server.(*Server).servePeer"
		goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction(peer), goleak.IgnoreAnyFunction(peer+".func2")) // the embedded server is in this process
	})
}

// Messages that are published while the connection is broken are lost, so Result checks the task
// again when it is connected.
func TestResultSurvivesADroppedSubscription(t *testing.T) {
	rdb, ctx := redistest.Start(t).Client(t), context.Background()
	q := queuetest.Open(t, rdb, queue.Config{Partitions: 4})
	for range 10 {
		w := &queuetest.Taker{Q: q, Worker: queue.NewCall()}
		id := queuetest.Enqueue(t, q, queue.Task{}).ID
		got := wait(ctx, q, id)
		untilWatched(t, rdb, q, id)
		claim := w.Take(t, id, "default")
		killed, err := rdb.ClientKillByFilter(ctx, "TYPE", "pubsub").Result()
		if err != nil || killed != 1 {
			t.Fatalf("CLIENT KILL = %d, %v, want the one subscription", killed, err)
		}
		w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Complete, Result: []byte("result")})
		if a := soon(t, got); a != (answer{result: "result"}) {
			t.Fatalf("Result = %+v", a)
		}
	}
}

// A waiting Result sends no commands, however far away the deadline is. A deadline can be farther
// away than the 292 years that a Duration can hold.
func TestResultDoesNotPoll(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Partitions: 4})
	tasks := map[string]queue.Task{
		"no deadline":           {},
		"a deadline in an hour": {Timeout: time.Hour},
		"a deadline in 2400":    {Deadline: time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a deadline in 3000":    {Deadline: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"the greatest deadline": {Deadline: time.UnixMilli(1 << 53)},
	}
	for claim, task := range tasks {
		t.Run(claim, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			id := queuetest.Enqueue(t, q, task).ID
			got := wait(ctx, q, id)
			untilWatched(t, rdb, q, id)
			before := commands(t, rdb)
			time.Sleep(500 * time.Millisecond) // sleeps: what must not happen has no signal
			if n := commands(t, rdb) - before; n > 5 {
				t.Errorf("Redis ran %d commands while Result waited for 500 ms, want at most 5", n)
			}
			cancel()
			soon(t, got)
		})
	}
}

// commands returns how many commands a server has run, without INFO.
func commands(t *testing.T, rdb *redis.Client) (sum int) {
	t.Helper()
	info, err := rdb.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		var n int
		if name, rest, ok := strings.Cut(line, ":calls="); ok && name != "cmdstat_info" {
			fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &n)
			sum += n
		}
	}
	return sum
}

// The caller of Result can be another program than the producer and the worker.
func TestResultComesFromAnotherProgram(t *testing.T) {
	server := redistest.Start(t)
	q, other := queuetest.Open(t, server.Client(t), queue.Config{}), queuetest.Open(t, server.Client(t), queue.Config{})
	id := queuetest.Enqueue(t, q, queue.Task{}).ID
	got := wait(context.Background(), other, id)
	untilWatched(t, q.Client(), q, id)
	w := &queuetest.Taker{Q: q, Worker: "w"}
	claim := w.Take(t, id, "default")
	w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Complete, Result: []byte("result")})
	if a := soon(t, got); a != (answer{result: "result"}) {
		t.Errorf("Result = %+v", a)
	}
}
