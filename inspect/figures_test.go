package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// ends are how many tasks of a kind ended, by status, reason and timeout type.
func ends(t *testing.T, q *queue.Queue, kind string) map[string]int64 {
	t.Helper()
	all, err := inspect.Figures(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int64{}
	for _, f := range all {
		if f.Kind == kind {
			for _, e := range f.Ends {
				n[strings.TrimSpace(fmt.Sprintln(e.Status, e.Reason, e.TimeoutType))] += e.Count
			}
		}
	}
	return n
}

func cancelled(t *testing.T, q *queue.Queue, tasks ...queue.Task) {
	t.Helper()
	for some := range slices.Chunk(tasks, 500) {
		receipts, err := q.EnqueueAll(context.Background(), some)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range receipts {
			ids = append(ids, r.ID)
		}
		if _, err := q.CancelAll(context.Background(), ids, ""); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFiguresOfAllPartitionsAddUp(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Partitions: 2})
		var tasks []queue.Task
		for i := range 20 {
			tasks = append(tasks, queue.Task{Kind: "k", Queue: fmt.Sprint("q", i%2), Timeout: time.Hour})
		}
		cancelled(t, q, tasks[:10]...) // a list goes to one partition, the next list to another
		cancelled(t, q, tasks[10:]...)
		all, err := inspect.Figures(context.Background(), q)
		if err != nil || len(all) != 2 {
			t.Fatalf("Figures = %+v, %v, want those of two queues", all, err)
		}
		for i, f := range all {
			want := []inspect.Ends{{Status: queue.Cancelled, Reason: "cancelled", Count: 10}}
			if f.Kind != "k" || f.Queue != fmt.Sprint("q", i) || !slices.Equal(f.Ends, want) || f.Share.Count() != 10 || f.Duration.Count() != 0 {
				t.Errorf("Figures = %+v, want 10 cancelled of k in q%d, each with a share of its time", f, i)
			}
			if len(f.Share.Counts) != len(f.Share.Buckets)+1 || !slices.IsSorted(f.Share.Buckets) {
				t.Errorf("%d buckets for the bounds %v, want one more, in order", len(f.Share.Counts), f.Share.Buckets)
			}
		}
		for p := range 2 {
			if n := rdb.Exists(context.Background(), q.Root(p)+":figures:k").Val(); n != 1 {
				t.Errorf("partition %d has no figures of k", p)
			}
		}
	})
}

func TestANamespaceWithoutFiguresWritesNone(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Figures: "off"})
		cancelled(t, q, queue.Task{Kind: "k", Timeout: time.Hour})
		again := queuetest.Open(t, rdb, queue.Config{Figures: "on"}) // without effect: the namespace keeps the setting with which it was created
		cancelled(t, again, queue.Task{Kind: "k"})
		if keys := rdb.Keys(context.Background(), q.Root(0)+":[fk]i*").Val(); len(keys) > 0 {
			t.Errorf("the keys %v exist, want none", keys)
		}
		if all, err := inspect.Figures(context.Background(), q); err != nil || len(all) > 0 {
			t.Errorf("Figures = %v, %v, want none", all, err)
		}
		_, err := queue.Open(context.Background(), rdb, queue.Config{Namespace: "other", Figures: "yes"})
		if !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("Open = %v, want ErrInvalid", err)
		}
	})
}

func TestKindsBeyondAThousandAreCountedTogether(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, q := context.Background(), queuetest.Open(t, rdb, queue.Config{})
		var kinds []any
		for i := range 998 {
			kinds = append(kinds, fmt.Sprint("old", i))
		}
		if err := rdb.SAdd(ctx, q.Root(0)+":kinds", kinds...).Err(); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"a", "b", "c", "d", "c", "a"} {
			cancelled(t, q, queue.Task{Kind: kind})
		}
		cancelled(t, q, queue.Task{Kind: "a", Queue: "another"})
		for kind, want := range map[string]int64{"a": 3, "b": 1, "c": 0, "d": 0, inspect.OtherKinds: 3} {
			if got := ends(t, q, kind)["CANCELLED cancelled"]; got != want {
				t.Errorf("%d of %s are counted, want %d", got, kind, want)
			}
		}
		if n := rdb.SCard(ctx, q.Root(0)+":kinds").Val(); n != 1001 {
			t.Errorf("%d kinds are listed, want 1,000 and %q", n, inspect.OtherKinds)
		}
	})
}

func TestATimeoutThatManyReapersSeeIsCountedOnce(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, q := context.Background(), queuetest.Open(t, rdb, queue.Config{Partitions: 2})
		var tasks []queue.Task
		for range 1000 {
			tasks = append(tasks, queue.Task{Kind: "k", Timeout: time.Millisecond})
		}
		for some := range slices.Chunk(tasks, 500) {
			if _, err := q.EnqueueAll(ctx, some); err != nil {
				t.Fatal(err)
			}
		}
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for ends(t, q, "k")["FAILED timeout execution"] < 1000 && !t.Failed() {
					for p := range 2 {
						if _, err := reaper.Sweep(ctx, q, p, fmt.Sprint("r", i), 10, time.Second); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		group.Wait()
		all, err := inspect.Figures(ctx, q)
		if err != nil || len(all) != 1 {
			t.Fatalf("Figures = %+v, %v", all, err)
		}
		f := all[0]
		if want := []inspect.Enqueued{{Source: inspect.FromClient, Count: 1000}}; !slices.Equal(f.Enqueued, want) || len(f.Ends) != 1 ||
			f.Ends[0].Policy != "fail" || f.LagBy[queue.TimeoutExecution].Count() != 1000 || f.Timed.Count() != 0 {
			t.Errorf("Figures = %+v, want 1,000 new tasks, and 1,000 timeouts with the policy fail", f)
		}
		if f.Ends[0].Count != 1000 || f.Lag.Count() != 1000 || f.Share.Count() != 1000 || f.Share.Sum != 1000 || f.Lag.Sum <= 0 {
			t.Errorf("Figures = %+v, want 1,000 timeouts, each with its lag, at the end of its time", f)
		}
	})
}

// One key that cannot be read must not cost a metrics exporter all figures, and no figure may be too small.
func TestFiguresThatCannotBeReadHideNoOthers(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, q := context.Background(), queuetest.Open(t, rdb, queue.Config{Partitions: 2})
		for range 2 { // one list to each partition
			cancelled(t, q, queue.Task{Kind: "a"}, queue.Task{Kind: "b"})
		}
		rdb.Set(ctx, q.Root(0)+":figures:a", "rubbish", 0)
		all, err := inspect.Figures(ctx, q)
		if !errors.Is(err, refusal.ErrWrongType) || len(all) != 1 || all[0].Kind != "b" || all[0].Ends[0].Count != 2 {
			t.Errorf("Figures = %+v, %v, want ErrWrongType, and those of b in both partitions", all, err)
		}
		rdb.Set(ctx, q.Root(1)+":kinds", "rubbish", 0)
		all, err = inspect.Figures(ctx, q)
		if !errors.Is(err, refusal.ErrWrongType) || !strings.Contains(fmt.Sprint(err), "figures:a") || !strings.Contains(fmt.Sprint(err), "{1}:kinds") {
			t.Errorf("Figures = %v, want ErrWrongType that names both keys", err)
		}
		if len(all) != 0 {
			t.Errorf("Figures = %+v, want none: the kinds of a partition are not known", all)
		}
	})
}

func TestTheAuditReportsFiguresThatAreNotListed(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, q := context.Background(), queuetest.Open(t, rdb, queue.Config{})
		cancelled(t, q, queue.Task{Kind: "k"})
		if findings, err := inspect.Audit(ctx, q); err != nil || len(findings) > 0 {
			t.Errorf("Audit = %v, %v, want nothing", findings, err)
		}
		rdb.SRem(ctx, q.Root(0)+":kinds", "k")
		findings, err := inspect.Audit(ctx, q)
		if err != nil || len(findings) != 1 || findings[0].Subject != "figures:k" {
			t.Errorf("Audit = %v, %v, want that figures:k is not listed", findings, err)
		}
	})
}

func TestAnExportHasTheFigures(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		cancelled(t, q, queue.Task{Kind: "mail:daily"})
		told := strings.Join(queuetest.Exported(t, q), "\n")
		for _, want := range []string{`"index":"figures","of":"mail:daily"`, `"default ended CANCELLED cancelled"`, `"index":"kinds"`} {
			if !strings.Contains(told, want) {
				t.Errorf("the export does not have %s:\n%s", want, told)
			}
		}
	})
}

// The bounds are in the names of fields, so other programs need no table of them. This package also
// returns empty buckets, so it needs a table, which must equal that of the Lua.
func TestBoundsOfBucketsAreThoseOfTheLua(t *testing.T) {
	source, err := os.ReadFile("../lua/store/figures.lua")
	if err != nil {
		t.Fatal(err)
	}
	rdb := redistest.Embedded(t).Client()
	q := queuetest.Open(t, rdb, queue.Config{})
	cancelled(t, q, queue.Task{Kind: "k"})
	all, err := inspect.Figures(context.Background(), q)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for list, bounds := range map[string][]float64{`local times = \{`: all[0].Duration.Buckets, `local lags = \{`: all[0].Lag.Buckets,
		`share = \{bounds = \{`: all[0].Share.Buckets} {
		match := regexp.MustCompile(list + `([^}]*)`).FindSubmatch(source)
		if match == nil {
			t.Fatalf("lua/store/figures.lua has no %s", list)
		}
		var want []string
		for _, bound := range bounds {
			want = append(want, fmt.Sprintf("%.0f", bound*1000))
		}
		if got := strings.Fields(strings.ReplaceAll(string(match[1]), ",", " ")); !slices.Equal(got, want) {
			t.Errorf("%s %v in lua/store/figures.lua, %v in inspect/figures.go", list, got, want)
		}
	}
	if !slices.Equal(all[0].Waiting.Buckets, all[0].Duration.Buckets) {
		t.Errorf("waiting has the bounds %v, duration %v", all[0].Waiting.Buckets, all[0].Duration.Buckets)
	}
}

func TestFiguresAreSortedByKindAndQueueAndEnd(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		for _, kind := range []string{"b", "a"} {
			for _, line := range []string{"z", "y"} {
				cancelled(t, q, queue.Task{Kind: kind, Queue: line})
				w := &queuetest.Taker{Q: q, Worker: kind + line}
				for _, verb := range []queue.Verb{queue.Fail, queue.Complete} {
					id := queuetest.Enqueue(t, q, queue.Task{Kind: kind, Queue: line}).ID
					outcome := queue.Outcome{ID: id, Epoch: w.Take(t, id, line).Epoch, Verb: verb}
					if verb == queue.Fail {
						outcome.Error = "e"
					}
					w.Settle(t, outcome)
				}
			}
		}
		all, err := inspect.Figures(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range all {
			for _, e := range f.Ends {
				got = append(got, fmt.Sprint(f.Kind, " ", f.Queue, " ", e.Status))
			}
		}
		if len(got) != 12 || !slices.IsSorted(got) {
			t.Errorf("Figures lists %q, want 12 ends in order", got)
		}
	})
}
