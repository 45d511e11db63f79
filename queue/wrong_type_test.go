package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// ours are keys of a partition, at least one of each kind.
var ours = []string{
	"", ":spec:0-p1", ":spec:0-r1", ":state:0-p1", ":state:0-r1", ":state:0-p2", ":payload:0-p1", ":payload:0-r1", ":result:0-r1", ":children:0-r1",
	":ready:hit", ":queue:hit", ":wake:hit", ":dead:hit", ":claims:w1", ":worker:w1", ":queues",
	":deadlines", ":limits", ":delayed", ":workers", ":draining", ":throttled", ":retained", ":idem", ":forget", ":broken", ":figures:k", ":kinds", ":events",
}

// large is a payload or result that is stored in a key of its own.
var large = strings.Repeat("p", 1000)

// disturbed is a namespace with tasks in every state and on every clock, and with queues that have
// limits.
type disturbed struct {
	*script
	w *queuetest.Taker
}

func disturb(t *testing.T, rdb redis.UniversalClient, library *lua.Library) *disturbed {
	t.Helper()
	if err := rdb.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "w", Library: library, Events: "all"})
	d := &disturbed{&script{q, rdb, library}, &queuetest.Taker{Q: q, Worker: "w1"}}
	d.accepts(t, "id", "0-e1", "kind", "k", "queue", "hit")
	if _, err := q.Cancel(context.Background(), "0-e1", ""); err != nil {
		t.Fatal(err)
	}
	d.accepts(t, "id", "0-r1", "kind", "k", "queue", "hit", "payload", large, "attempt_timeout_ms", "20000")
	d.accepts(t, "id", "0-r2", "kind", "k", "queue", "other", "timeout_ms", "20000")
	d.w.Take(t, "0-r1", "hit")
	d.w.Take(t, "0-r2", "other")
	d.accepts(t, "id", "0-r1.c", "kind", "k", "queue", "other")
	d.accepts(t, "id", "0-p1", "kind", "k", "queue", "hit", "payload", large, "timeout_ms", "60000", "queue_timeout_ms", "10000", "idempotency_key", "k1")
	d.accepts(t, "id", "0-p2", "kind", "k", "queue", "other")
	d.accepts(t, "id", "0-d1", "kind", "k", "queue", "hit", "delay_ms", "5000")

	d.accepts(t, "id", "0-o1", "kind", "k", "queue", "hit", "role", "promise", "timeout_ms", "60000", "hook_success", "h hit")
	d.accepts(t, "id", "0-s1", "kind", "k", "queue", "slow")
	d.accepts(t, "id", "0-s2", "kind", "k", "queue", "slow")
	_, err := q.LimitRate(context.Background(), "slow", queue.Rate{N: 1, Per: time.Minute})
	if _, more := q.LimitRunning(context.Background(), "hit", 9); err != nil || more != nil {
		t.Fatal(err, more)
	}
	d.w.Take(t, "0-s1", "slow")
	return d
}

// scripts are the calls that are made on it. Each returns what the tasks of the call got.
var scripts = []struct {
	name string
	call func(*disturbed, context.Context) ([]string, error)
	only func(t *testing.T, d *disturbed, words []string, err error, before string) // checks that are only for this call
}{
	{"open", func(d *disturbed, ctx context.Context) ([]string, error) {
		_, err := queue.Open(ctx, d.rdb, queue.Config{Namespace: "w", Library: d.library, Logger: d.q.Logger()})
		return nil, err
	}, changesNothing},
	{"enqueue", func(d *disturbed, ctx context.Context) ([]string, error) {
		tasks := [][]any{
			{"id", "0-p1", "kind", "k", "queue", "hit", "payload", large, "timeout_ms", "60000", "queue_timeout_ms", "10000", "idempotency_key", "k1", "priority", "0"},
			{"id", "0-n1", "kind", "k", "queue", "hit", "payload", large, "timeout_ms", "60000", "queue_timeout_ms", "10000", "idempotency_key", "k2"},
			{"id", "0-r1.n", "kind", "k", "queue", "hit"},
			{"id", "0-n2", "kind", "k", "queue", "hit", "delay_ms", "5000"},
			{"id", "0-n3", "kind", "k", "queue", "other"}}
		reply, err := d.library.Run(ctx, d.rdb, "enqueue", d.q.Root(0), wire.Tasks(tasks...)...)
		var words []string
		if err == nil {
			for _, row := range wire.Answers(tasks, reply) {
				words = append(words, fmt.Sprint(row))
			}
		} else if strings.Contains(err.Error(), "WRONGTYPE") {
			err = fmt.Errorf("%w (%w)", refusal.ErrWrongType, err)
		}
		return words, err
	}, createsOrDoesNot},
	{"fetch", func(d *disturbed, ctx context.Context) ([]string, error) {
		d.w.Seq++
		trip, err := claim.Of(d.q).Fetch(ctx, 0, "w1", claim.Ask{N: 5, Seq: d.w.Seq, Lease: 15 * time.Second,
			Quotas: []claim.Quota{{Queue: "hit", N: 5}, {Queue: "other", N: 5}}})
		var words []string
		for _, c := range trip.Claims {
			words = append(words, c.ID)
		}
		return words, err
	}, nil},
	{"settle", func(d *disturbed, ctx context.Context) ([]string, error) {
		d.w.Seq++
		trip, err := claim.Of(d.q).Settle(ctx, 0, "w1", "call", []queue.Outcome{
			{ID: "0-r1", Epoch: 1, Verb: queue.Complete, Result: []byte(large)}, {ID: "0-r2", Epoch: 1, Verb: queue.Fail, Error: "x"}}, claim.Ask{})
		var words []string
		for _, v := range trip.Verdicts {
			words = append(words, string(v.Word))
		}
		return words, err
	}, nil},
	{"heartbeat", func(d *disturbed, ctx context.Context) ([]string, error) {
		stops, err := claim.Of(d.q).Heartbeat(ctx, 0, "w1", 15*time.Second, 100, []claim.Held{{ID: "0-r1", Epoch: 1, Progress: "half"}})
		var words []string
		for _, s := range stops {
			words = append(words, s.ID+" "+s.Reason)
		}
		return words, err
	}, nil},
	{"goodbye", func(d *disturbed, ctx context.Context) ([]string, error) {
		_, err := claim.Of(d.q).Heartbeat(ctx, 0, "w1", 0, 100, nil)
		return nil, err
	}, nil},
	{"cancel", func(d *disturbed, ctx context.Context) ([]string, error) {
		all, err := d.q.CancelAll(ctx, []string{"0-p1", "0-r1", "0-p2", "0-d1"}, "x")
		var words []string
		for _, c := range all {
			words = append(words, fmt.Sprint(c.Done, c.Err))
		}
		return words, err
	}, nil},
	{"delete", func(d *disturbed, ctx context.Context) ([]string, error) {
		if err := d.rdb.Set(ctx, d.q.Root(0)+":clock", testclock.Start.Add(2*time.Minute).UnixMilli(), 0).Err(); err != nil {
			return nil, err
		}
		all, err := d.q.DeleteAll(ctx, []string{"0-e1", "0-p1", "0-o1"})
		var words []string
		for _, deleted := range all {
			words = append(words, fmt.Sprint(deleted))
		}
		return words, err
	}, nil},
	{"resolve", func(d *disturbed, ctx context.Context) ([]string, error) {
		r, err := d.q.Resolve(ctx, "0-o1", []byte("yes"))
		return []string{fmt.Sprint(r.Done)}, err
	}, nil},
	{"control", func(d *disturbed, ctx context.Context) ([]string, error) {
		_, err := d.q.LimitRate(ctx, "hit", queue.Rate{N: 5, Per: time.Second})
		return nil, err
	}, controlsOrDoesNot},
	{"drain", func(d *disturbed, ctx context.Context) ([]string, error) {
		n, err := d.q.Drain(ctx, "hit", "enough")
		return []string{fmt.Sprint(n)}, err
	}, drainsOrDoesNot},
	{"define", func(d *disturbed, ctx context.Context) ([]string, error) {
		return nil, d.q.DefineKind(ctx, "other", queue.Defaults{Timeout: time.Hour})
	}, definesOrDoesNot},
	{"configure", func(d *disturbed, ctx context.Context) ([]string, error) {
		return nil, d.q.Configure(ctx, queue.Settings{EventMiB: 7})
	}, definesOrDoesNot},
	{"watch", func(d *disturbed, ctx context.Context) ([]string, error) {
		reply, err := d.library.Run(ctx, d.rdb, "watch", d.q.Root(0), "0-p1", "0-r1", "0-p2")
		if err != nil && strings.Contains(err.Error(), "WRONGTYPE") {
			err = fmt.Errorf("%w (%w)", refusal.ErrWrongType, err)
		}
		return []string{fmt.Sprint(reply)}, err
	}, nil},
	{"read", func(d *disturbed, ctx context.Context) ([]string, error) {
		all, err := d.q.GetAll(ctx, []string{"0-p1", "0-r1", "0-p2"})
		var words []string
		for _, r := range all {
			words = append(words, fmt.Sprint(r != nil))
		}
		return words, err
	}, changesNothing},
	{"list", func(d *disturbed, ctx context.Context) ([]string, error) {
		page, err := inspect.List(ctx, d.q, inspect.Filter{}, "", 100)
		return []string{fmt.Sprint(len(page.Lines))}, err
	}, changesNothing},
	{"describe_worker", func(d *disturbed, ctx context.Context) ([]string, error) {
		return nil, claim.Of(d.q).Describe(ctx, 0, "w1", queue.WorkerRunning, "about")
	}, describesOrDoesNot},
	{"stop_worker", func(d *disturbed, ctx context.Context) ([]string, error) { return nil, d.q.StopWorker(ctx, "w1") }, describesOrDoesNot},
	{"read_workers", func(d *disturbed, ctx context.Context) ([]string, error) {
		reply, err := d.library.Run(ctx, d.rdb, "read_workers", d.q.Root(0))
		if err != nil && strings.Contains(err.Error(), "WRONGTYPE") {
			err = fmt.Errorf("%w (%w)", refusal.ErrWrongType, err)
		}
		return []string{fmt.Sprint(reply)}, err
	}, changesNothing},
	{"read_queues", func(d *disturbed, ctx context.Context) ([]string, error) {
		_, err := d.q.Stats(ctx)
		return nil, err
	}, changesNothing},
	{"sweep", func(d *disturbed, ctx context.Context) ([]string, error) {
		var words []string
		for range 4 {
			s, err := reaper.Sweep(ctx, d.q, 0, "r", 100, 500*time.Millisecond)
			if err != nil {
				return words, err
			}
			words = append(words, fmt.Sprintf("%+v", s))
		}
		return words, nil
	}, nil},
}

// A key of the namespace can have a wrong type. Only enqueue checks its keys before its first write,
// and refuses. Calls that read write nothing. The other calls notice it at the step that needs the
// key, and Redis does not undo earlier writes. So these calls promise less: the error is typed, the
// key stays as it is, tasks that do not need the key continue, and all tasks continue when the key
// is removed.
func TestAKeyOfTheWrongType(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		library := testclock.Library(t, rdb)
		for i, s := range scripts {
			for j, key := range ours {
				if !combined(t, i, j) {
					continue
				}
				t.Run(s.name+" and root"+key, func(t *testing.T) {
					d := disturb(t, rdb, library)
					if s.name == "sweep" { // all clocks are due
						testclock.Set(t, rdb, d.q.Root(0), testclock.Start.Add(8*24*time.Hour))
					}
					d.put(t, key)
					before := d.dump(t)
					words, err := s.call(d, context.Background())
					if err != nil && (!errors.Is(err, refusal.ErrWrongType) || strings.Contains(err.Error(), "\n")) {
						t.Errorf("error %q, want ErrWrongType on one line", err)
					}
					if s.only != nil {
						s.only(t, d, words, err, before)
					}
					// The key of a token or of a worker is deleted with DEL, whatever its type is.
					token := strings.HasPrefix(key, ":wake:") || strings.HasPrefix(key, ":worker:")
					if got := d.rubbish(t, key); got != "rubbish" && !token {
						t.Errorf("the key holds %q now, want rubbish", got)
					}
					if strings.Count(key, ":") == 2 {
						d.goesOn(t)
					}
					d.rdb.Del(context.Background(), d.q.Root(0)+key)
					if key == "" {
						d.q = queuetest.Open(t, rdb, queue.Config{Namespace: "w", Library: library})
						d.w.Q = d.q
					}
					d.goesOn(t)
				})
			}
		}
	})
}

// combined reports whether a test combines the i-th script with the j-th key. The embedded server runs the same Lua, many times as
// slowly, so a usual run plays a quarter of the combinations there, with every script and every key.
func combined(t *testing.T, i, j int) bool {
	return !strings.HasSuffix(t.Name(), "/embedded") || size.Long() || (i+j)%4 == 0
}

// put replaces a key by one of a wrong type.
func (d *disturbed) put(t *testing.T, key string) {
	t.Helper()
	ctx, full := context.Background(), d.q.Root(0)+key
	err := d.rdb.Del(ctx, full).Err()
	if isText(key) {
		err = errors.Join(err, d.rdb.RPush(ctx, full, "rubbish").Err())
	} else {
		err = errors.Join(err, d.rdb.Set(ctx, full, "rubbish", 0).Err())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// isText reports whether a key is a string. put then replaces it by a list, otherwise by a string.
func isText(key string) bool {
	return strings.HasPrefix(key, ":spec:") || strings.HasPrefix(key, ":state:") || strings.HasPrefix(key, ":payload:") || strings.HasPrefix(key, ":result:")
}

// field returns a field of a task's record, or "" if the record cannot be read.
func (d *disturbed) field(id, name string) string {
	r, err := d.q.Get(context.Background(), id)
	if err != nil {
		return ""
	}
	return r.Fields[name]
}

func (d *disturbed) rubbish(t *testing.T, key string) string {
	t.Helper()
	ctx, full := context.Background(), d.q.Root(0)+key
	if isText(key) {
		return d.rdb.LIndex(ctx, full, 0).Val()
	}
	return d.rdb.Get(ctx, full).Val()
}

func (d *disturbed) dump(t *testing.T) string { return redistest.Dump(t, d.rdb, d.q.Root(0)) }

// goesOn runs a new task of another queue with another worker, from enqueue to settle.
func (d *disturbed) goesOn(t *testing.T) {
	t.Helper()
	w := &queuetest.Taker{Q: d.q, Worker: "w2-" + queue.NewCall()}
	id := queuetest.Enqueue(t, d.q, queue.Task{Queue: "free", Timeout: time.Minute, AttemptTimeout: time.Second}).ID
	held := w.Take(t, id, "free")
	w.Settle(t, queue.Outcome{ID: id, Epoch: held.Epoch, Verb: queue.Complete})
	if _, err := claim.Of(d.q).Heartbeat(context.Background(), 0, w.Worker, 0, w.Seq, nil); err != nil {
		t.Error(err)
	}
}

// changesNothing is the check of a call that only reads.
func changesNothing(t *testing.T, d *disturbed, _ []string, _ error, before string) {
	if after := d.dump(t); after != before {
		t.Errorf("it changed something:\n%s", redistest.Diff(before, after))
	}
}

// createsOrDoesNot is the check of enqueue: nothing is stored of a task that was not acknowledged.
func createsOrDoesNot(t *testing.T, d *disturbed, words []string, err error, before string) {
	diff := redistest.Diff(before, d.dump(t))
	if err != nil && diff != "" {
		t.Errorf("refused with %v, and it changed something:\n%s", err, diff)
	}
	for _, word := range words {
		var verdict, id string
		fmt.Sscan(strings.Trim(word, "[]"), &verdict, &id)
		owner := ":state:" + strings.TrimSuffix(id, ".n") + " "
		if verdict != "OK" && (strings.Contains(diff, id) || strings.Contains(diff, owner)) {
			t.Fatalf("the answer is %s, but something was stored:\n%s", word, diff)
		}
	}
}

// A worker fetches from several lines at once. If the line of one queue has a wrong type, the tasks of
// the others must not be lost.
func TestALineOfTheWrongTypeLosesNoTaskOfAnother(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	for _, key := range []string{":ready:hit", ":queue:hit", ":wake:hit", ":throttled"} {
		t.Run("root"+key, func(t *testing.T) { losesNoTaskOfAnotherLine(t, key) })
	}
}

func losesNoTaskOfAnotherLine(t *testing.T, key string) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		d := disturb(t, rdb, testclock.Library(t, rdb))
		ctx := context.Background()
		d.put(t, key)
		for seq := range int64(3) {
			_, err := claim.Of(d.q).Fetch(ctx, 0, "w2", claim.Ask{N: 5, Seq: seq + 1, Lease: 15 * time.Second,
				Quotas: []claim.Quota{{Queue: "other", N: 5}, {Queue: "hit", N: 5}}})
			if err != nil && !errors.Is(err, refusal.ErrWrongType) {
				t.Fatal(err)
			}
		}
		// The task is held by a worker with a lease, or it is in line.
		r, err := d.q.Get(ctx, "0-p2")
		if err != nil {
			t.Fatal(err)
		}
		held := rdb.ZScore(ctx, d.q.Root(0)+":claims:"+r.Worker, r.ID).Err() == nil
		ready := rdb.ZScore(ctx, d.q.Root(0)+":ready:other", r.ID).Err() == nil
		if r.Status == queue.Running && !held || r.Status == queue.Pending && !ready {
			t.Errorf("%s is %s (worker %q), but neither held nor in line, so it will never run", r.ID, r.Status, r.Worker)
		}
		// A queue whose controls cannot be read may be paused, so it gives nothing.
		if p1 := d.field("0-p1", "status"); key == ":queue:hit" && p1 != "PENDING" {
			t.Errorf("a queue whose controls cannot be read gave 0-p1: it is %s, want PENDING", p1)
		}
	})
}

// controlsOrDoesNot checks that a control that was refused changed nothing. The event is written
// last: if it cannot be written, the control is stored even so.
func controlsOrDoesNot(t *testing.T, d *disturbed, _ []string, err error, before string) {
	record := fmt.Sprint(d.rdb.HMGet(context.Background(), d.q.Root(0)+":queue:hit", "rate", "per_ms", "burst").Val())
	diff := redistest.Diff(before, d.dump(t))
	silent := strings.HasPrefix(d.rdb.Type(context.Background(), d.q.EventsKey(0)).Val(), "string")
	if holds := err == nil || silent; holds && record != "[5 1000 5]" || !holds && diff != "" {
		t.Errorf("error %v, the queue has the controls %s, and the call changed:\n%s", err, record, diff)
	}
}

// drainsOrDoesNot checks that a task that was cancelled is not in line, and that others are.
func drainsOrDoesNot(t *testing.T, d *disturbed, _ []string, _ error, _ string) {
	ctx := context.Background()
	status := d.field("0-p1", "status")
	_, err := d.rdb.ZScore(ctx, d.q.Root(0)+":ready:hit", "0-p1").Result()
	if known := status != "" && !strings.HasPrefix(fmt.Sprint(err), "WRONGTYPE"); known && (err == nil) != (status == "PENDING") {
		t.Errorf("0-p1 is %s, and in line: %v", status, err == nil)
	}
}

// describesOrDoesNot checks that a call that failed changed nothing.
func describesOrDoesNot(t *testing.T, d *disturbed, _ []string, err error, before string) {
	if diff := redistest.Diff(before, d.dump(t)); err != nil && diff != "" {
		t.Errorf("error %v, and it changed:\n%s", err, diff)
	}
}

func definesOrDoesNot(t *testing.T, d *disturbed, _ []string, err error, before string) {
	if diff := redistest.Diff(before, d.dump(t)); (err == nil) == (diff == "") {
		t.Errorf("error %v, and it changed:\n%s", err, diff)
	}
}
