package misuse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// A worker and its reaper lose a right while they run. That is an outage: it is logged, nothing is
// half done, and all tasks end when the right is granted again. A usual run tries one right in four.
func TestARightThatIsWithdrawnIsAnOutage(t *testing.T) {
	for _, row := range []struct {
		withdrawn string
		works     bool // whether tasks end without the right
	}{
		{"-mset", false}, {"-hset", false}, {"-zadd", false}, {"-xadd", false}, {"-zrem", false}, {"-unlink", false}, {"-mget", false}, {"-zrangebyscore", false},
		{"-fcall", false}, {"-@write", false}, {"-@read", false}, {"-@all", false}, {"resetkeys", false}, {"resetkeys ~curfew:{0}", false},
		{"-blpop", true}, {"-publish", true}, {"-subscribe", true}, {"resetchannels", true},
	} {
		if !size.Drawn(row.withdrawn, 4) {
			continue
		}
		t.Run(row.withdrawn, func(t *testing.T) {
			t.Parallel()
			admin := redistest.Start(t).Client(t)
			whole, err := openAs(admin, queue.AccessAll, quiet)
			if err != nil {
				t.Fatal(err)
			}
			all := rules(t, "worker")
			var log harness.Logs
			q, err := openAs(user(t, admin, "worker", all...), queue.AccessWork, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- busy(q).Run(ctx) }()
			ends(t, whole, begin(t, whole, 1))
			tasks := begin(t, whole, 10)
			grant(t, admin, "worker", strings.Fields(row.withdrawn)...)
			tasks = append(tasks, begin(t, whole, 10)...)
			if row.works {
				ends(t, whole, tasks)
				tasks = begin(t, whole, 5)
			} else {
				await.Until(t, "the missing right is logged", func() bool { return log.Count(refusal.ErrNoRight.Error()) > 0 })
			}
			grant(t, admin, "worker", all...)
			ends(t, whole, tasks)
			stop()
			if err := <-ended; err != nil {
				t.Errorf("Run = %v", err)
			}
			if found, err := inspect.Audit(t.Context(), whole); err != nil || len(found) > 0 {
				t.Errorf("Audit = %v, %v", found, err)
			}
			if stats, err := whole.Stats(t.Context()); err != nil || stats.Broken > 0 {
				t.Errorf("Stats = %+v, %v, want no broken task", stats, err)
			}
		})
	}
}

// busy returns a worker for short tasks, tasks that hang, and agents.
func busy(q *queue.Queue) *worker.Worker {
	w := worker.New(q, worker.Config{Beat: 50 * time.Millisecond, Concurrency: 50})
	w.HandleRaw("short", func(context.Context, []byte) ([]byte, error) {
		harness.Pass(20 * time.Millisecond) // sleeps: the work of the task
		return []byte(`"x"`), nil
	})
	w.HandleRaw("hangs", func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ string) (string, error) {
		first, second := agentwait.Schedule[string](a, nil, queue.Task{Kind: "short"}), agentwait.Schedule[string](a, nil, queue.Task{Kind: "hangs", Timeout: 300 * time.Millisecond})
		agentwait.Await(a.With(agentwait.Wait{}), second)
		return agentwait.Await(a, first)
	})
	return w
}

func begin(t *testing.T, q *queue.Queue, n int) (ids []string) {
	t.Helper()
	for range n {
		for kind, timeout := range map[string]time.Duration{"short": 0, "hangs": 300 * time.Millisecond, "agent": 0} {
			if r, err := q.Enqueue(t.Context(), queue.Task{Kind: kind, Timeout: timeout}); err != nil {
				t.Fatal(err)
			} else if ids = append(ids, r.ID); n == 1 {
				return ids
			}
		}
	}
	return ids
}

// endedOf returns the ids of the tasks that have ended.
func endedOf(t *testing.T, q *queue.Queue, ids []string) (ended []string) {
	t.Helper()
	records, err := q.GetAll(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r != nil && r.Status.Ended() {
			ended = append(ended, r.ID)
		}
	}
	return ended
}

// ends waits until tasks have ended, and checks that each has the end of its kind.
func ends(t *testing.T, q *queue.Queue, ids []string) {
	t.Helper()
	await.Until(t, "all tasks have ended", func() bool { return len(endedOf(t, q, ids)) == len(ids) })
	records, err := q.GetAll(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.TimedOut != (r.Kind == "hangs") || r.Kind != "hangs" && r.Status != queue.Completed {
			t.Errorf("a task of kind %s ended as %s %s: %s", r.Kind, r.Status, r.Reason, r.Error)
		}
		if r.Kind == "short" && r.Epoch != 1 {
			t.Errorf("a task of kind %s ran %d times, want 1: an outcome was lost", r.Kind, r.Epoch)
		}
	}
}

// Without the right to channels, from the beginning or withdrawn, Result still returns the result.
// Without the right to its calls, Result returns ErrNoRight at its next poll.
func TestResultWithoutARight(t *testing.T) {
	for _, row := range []struct {
		claim, before, while string
		want                 error
	}{
		{"no channels from the beginning", "resetchannels", "", nil},
		{"no SUBSCRIBE from the beginning", "-subscribe", "", nil},
		{"channels withdrawn", "", "resetchannels", nil},
		{"SUBSCRIBE withdrawn", "", "-subscribe", nil},
		{"FCALL withdrawn", "", "-fcall", refusal.ErrNoRight},
		{"keys withdrawn", "", "resetkeys", refusal.ErrNoRight},
		{"MSET withdrawn before Result marks the task", "-mset", "", refusal.ErrNoRight},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			admin := redistest.Start(t).Client(t)
			whole, err := openAs(admin, queue.AccessAll, quiet)
			if err != nil {
				t.Fatal(err)
			}
			q, err := openAs(user(t, admin, "producer", rules(t, "producer")...), queue.AccessProduce, quiet)
			if err != nil {
				t.Fatal(err)
			}
			id := must[queue.Receipt](t)(whole.Enqueue(t.Context(), queue.Task{Kind: "k"})).ID
			grant(t, admin, "producer", strings.Fields(row.before)...)
			ctx, cancel := context.WithTimeout(t.Context(), await.Limit(t))
			defer cancel()
			got := make(chan error, 1)
			go func() { _, err := q.Result(ctx, id); got <- err }()
			if row.want == nil || row.while != "" {
				await.Until(t, "Result has marked the task", func() bool { r, err := whole.Get(ctx, id); return err == nil && r.Fields["watched"] != "" })
			}
			grant(t, admin, "producer", strings.Fields(row.while)...)
			if row.want == nil {
				whole.Cancel(ctx, id, "")
				row.want = refusal.ErrCancelled
			}
			if err := await.Receive(t, got, "Result returns"); !errors.Is(err, row.want) {
				t.Errorf("Result = %v, want %v", err, row.want)
			}
		})
	}
}

// Run of a worker or a reaper without a right returns ErrNoRight at once.
func TestRunWithoutARightReturns(t *testing.T) {
	admin := redistest.Start(t).Client(t)
	rdb := user(t, admin, "worker", rules(t, "worker")...)
	for withdrawn, programs := range map[string][]string{"-zadd": {"worker"}, "-@write": {"worker"}, "-fcall": {"worker", "reaper"}, "resetkeys": {"worker", "reaper"}} {
		grant(t, admin, "worker", append([]string{"reset", "on", ">secret"}, rules(t, "worker")...)...)
		q, err := openAs(rdb, queue.AccessWork, quiet)
		if err != nil {
			t.Fatal(err)
		}
		grant(t, admin, "worker", withdrawn)
		for _, program := range programs {
			ctx, cancel := context.WithTimeout(t.Context(), await.Limit(t))
			run := busy(q).Run
			if program == "reaper" {
				run = reaper.New(q, reaper.Config{}).Run
			}
			if err := run(ctx); !errors.Is(err, refusal.ErrNoRight) || ctx.Err() != nil {
				t.Errorf("without %s: %s.Run = %v, want ErrNoRight", withdrawn, program, err)
			}
			cancel()
		}
	}
}

// The user of one namespace has no right to another one, even if one name is a prefix of the other.
func TestAUserHasOneNamespaceOnly(t *testing.T) {
	admin := redistest.Start(t).Client(t)
	open := func(rdb redis.UniversalClient, namespace string) error {
		_, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: namespace, Logger: quiet, Access: queue.AccessWork})
		return err
	}
	for _, namespace := range []string{"a", "a:b", "a:b:c", "a.b", "a-"} {
		var own []string
		for _, rule := range rules(t, "worker") {
			own = append(own, strings.ReplaceAll(rule, "curfew", namespace))
		}
		rdb := user(t, admin, "worker", own...)
		for _, other := range []string{"a", "a:b", "a:b:c", "a.b", "a-", "b"} {
			err := open(rdb, other)
			if other == namespace && err != nil {
				t.Errorf("the user of %s: Open of %s = %v", namespace, other, err)
			}
			if other != namespace && (!errors.Is(err, refusal.ErrNoRight) || !strings.Contains(err.Error(), "~"+other+":{*")) {
				t.Errorf("the user of %s: Open of %s = %v, want ErrNoRight with the key pattern of %s", namespace, other, err, other)
			}
		}
		if err := rdb.Publish(t.Context(), "a:b:c:d:{0}:ended", "x").Err(); err == nil {
			t.Errorf("the user of %s can publish for a:b:c:d", namespace)
		}
	}
}

// The error of a call after Open says how to grant the right that was withdrawn, whatever the names of the
// namespace and its queues contain.
func TestTheErrorOfAWithdrawnRightNamesItsCure(t *testing.T) {
	admin := redistest.Start(t).Client(t)
	const namespace = "script-of-channel"
	config := queue.Config{Namespace: namespace, Logger: quiet, Events: queue.EventsAll}
	if _, err := queue.Open(t.Context(), admin, config); err != nil {
		t.Fatal(err)
	}
	enqueue := func(q *queue.Queue) error {
		_, err := q.Enqueue(t.Context(), queue.Task{Kind: "k", Queue: "channel-script", Timeout: time.Hour})
		return err
	}
	for name, row := range map[string]struct{ withdrawn, cure string }{
		"a": {"-xadd", "+xadd"},
		"b": {"-mset", "+mset"},
		"c": {"-zadd", "+zadd"},
		"d": {"-hmget", ""}, // Redis 7.0 does not say which command
		"e": {"resetkeys ~script-of-channel:{0}", "~script-of-channel:{*}*"},
		"f": {"-fcall -eval -evalsha", "+fcall +function|load, or +eval +evalsha"},
	} {
		q, err := queue.Open(t.Context(), user(t, admin, name, "~*", "&*", "+@all"), config)
		if err == nil {
			err = enqueue(q)
		}
		if err != nil {
			t.Fatal(err)
		}
		grant(t, admin, name, strings.Fields(row.withdrawn)...)
		err = enqueue(q)
		_, cure, named := strings.Cut(fmt.Sprint(err), ": ACL SETUSER "+name+" ")
		cure, _, _ = strings.Cut(cure, " (")
		if !errors.Is(err, refusal.ErrNoRight) || row.cure != "" && cure != row.cure || !named && !strings.Contains(err.Error(), "open the namespace again to learn which") {
			t.Errorf("%s: Enqueue = %v, want a text with %q", row.withdrawn, err, row.cure)
			continue
		}
		if named {
			cure, _, _ = strings.Cut(cure, ", or ")
			grant(t, admin, name, strings.Fields(cure)...)
			if err := enqueue(q); err != nil {
				t.Errorf("%s, and then %s: Enqueue = %v", row.withdrawn, cure, err)
			}
		}
	}
}
