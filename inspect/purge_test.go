package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Purge removes the records of ended tasks that match, and nothing else.
func TestPurgeRemovesWhatMatches(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		l := newListed(t, rdb, 2)
		end := func(name string, task queue.Task) {
			t.Helper()
			if _, err := l.Cancel(t.Context(), l.add(name, task), ""); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			end(fmt.Sprint("old mail ", i), queue.Task{Kind: "mail"})
		}
		end("old render", queue.Task{Kind: "render"})
		l.add("live mail", queue.Task{Kind: "mail", Queue: "x"})
		l.advance(time.Hour)
		end("new mail", queue.Task{Kind: "mail"})
		done := func(f inspect.Filter, want inspect.Purged, left ...string) {
			t.Helper()
			got, err := inspect.Purge(t.Context(), l.Queue, f)
			if there, _ := l.pages(inspect.Filter{}, 100); err != nil || got != want || len(there) != len(left) {
				t.Errorf("purge of %+v did %+v, %v, and left %q, want %+v and %q", f, got, err, there, want, left)
			} else {
				for _, name := range left {
					if !slices.Contains(there, name) {
						t.Errorf("purge of %+v removed %s", f, name)
					}
				}
			}
		}
		done(inspect.Filter{Queue: "nobody"}, inspect.Purged{}, "old mail 0", "old mail 1", "old mail 2", "old render", "live mail", "new mail")
		done(inspect.Filter{Kind: "mail", Before: testclock.Start.Add(time.Minute)}, inspect.Purged{Removed: 3}, "old render", "live mail", "new mail")
		done(inspect.Filter{Statuses: []queue.Status{queue.Completed}}, inspect.Purged{}, "old render", "live mail", "new mail")
		done(inspect.Filter{}, inspect.Purged{Removed: 1, Later: 1}, "live mail", "new mail")
		l.advance(time.Minute)
		done(inspect.Filter{Statuses: []queue.Status{}}, inspect.Purged{Removed: 1}, "live mail") // the same as nil
		_, err := inspect.Purge(t.Context(), l.Queue, inspect.Filter{Statuses: []queue.Status{queue.Failed, queue.Pending}})
		if !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("of live tasks: %v", err)
		}
	})
}

// Kinds returns a kind with its counts, its defaults and its workers, whichever of these it has.
func TestKindsAreThoseThatEndedOrHaveDefaultsOrAWorker(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		for _, line := range []string{"a", "b"} {
			for range 2 {
				id := queuetest.Enqueue(t, q, queue.Task{Kind: "mail", Queue: line}).ID
				if _, err := q.Cancel(t.Context(), id, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := q.DefineKind(t.Context(), "render", queue.Defaults{Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		for _, w := range []string{"w1", "w2"} {
			for p := range q.Partitions() {
				if _, err := claim.Of(q).Heartbeat(t.Context(), p, w, time.Hour, 0, nil); err != nil {
					t.Fatal(err)
				}
				if err := claim.Of(q).Describe(t.Context(), p, w, queue.WorkerRunning, `{"queues":{"a":1},"kinds":["mail","scan"]}`); err != nil {
					t.Fatal(err)
				}
			}
		}
		kinds, err := inspect.Kinds(t.Context(), q)
		var got []string
		for _, k := range kinds {
			got = append(got, fmt.Sprint(k.Kind, " queues ", len(k.Queues), " cancelled ", k.Count(queue.Cancelled), " failed ", k.Count(queue.Failed), " ", k.Defaults, " workers ", k.Workers))
		}
		want := []string{"mail queues 2 cancelled 4 failed 0 map[] workers 2", "render queues 0 cancelled 0 failed 0 map[timeout_ms:60000] workers 0",
			"scan queues 0 cancelled 0 failed 0 map[] workers 2"}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("kinds are\n%q, %v, want\n%q", got, err, want)
		}
	})
}

// Explain says how often a task was given back, and does not count retries and lost leases.
func TestExplainCountsReleases(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Library: testclock.Library(t, rdb)})
		testclock.Set(t, rdb, q.Root(0), testclock.Start)
		for _, name := range []string{"", "order-17"} {
			line := "q" + name
			id := queuetest.Enqueue(t, q, queue.Task{Name: name, Kind: "k", Queue: line, MaxRetries: 5, Backoff: queue.Backoff{Delay: queue.None}}).ID
			w := &queuetest.Taker{Q: q, Worker: "w" + name}
			for i, want := range []struct {
				verb  queue.Verb
				times int64
			}{{queue.Release, 1}, {queue.Release, 2}, {queue.Fail, 2}, {queue.Release, 3}} {
				claim := w.Take(t, id, line)
				w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: want.verb, Error: "no handler"})
				testclock.Set(t, rdb, q.Root(0), testclock.Start.Add(time.Duration(i+1)*time.Hour))
				if _, err := q.Stats(t.Context()); err != nil {
					t.Fatal(err)
				}
				e, err := inspect.Explain(t.Context(), q, id)
				if err != nil || e.GivenBack != want.times {
					t.Errorf("%q after step %d: given back %d times, %v, want %d: %v", name, i, e.GivenBack, err, want.times, e)
				}
			}
		}
	})
}
