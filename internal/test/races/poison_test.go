package races

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// clocks are the sorted sets that a sweep reads.
var clocks = []string{"deadlines", "limits", "delayed", "workers", "draining", "retained", "forget"}

// work has something that is due soon on each clock.
type work struct {
	*stage
	ids                                     []string
	late, queued, delayed, held, owner, old string
}

func newWork(t *testing.T) *work {
	w := &work{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{})}
	soon := 200 * time.Millisecond
	ids := w.Enqueue(queue.Task{Kind: "held"}, queue.Task{Kind: "owner"}, queue.Task{Kind: "old", IdempotencyKey: "old"})
	w.held, w.owner, w.old = ids[0], ids[1], ids[2]
	w.fetch("lost", 1, 1, soon)
	w.fetch("w", 1, 2, time.Minute)
	child := w.Enqueue(queue.Task{Kind: "child", ID: w.owner + ".1", Queue: "children"})
	w.settle(w.owner, w.old)
	more := w.Enqueue(queue.Task{Kind: "late", Timeout: soon, Queue: "other"}, queue.Task{Kind: "queued", QueueTimeout: soon, Queue: "other"},
		queue.Task{Kind: "delayed", Delay: soon, Queue: "other"})
	w.late, w.queued, w.delayed = more[0], more[1], more[2]
	// Records are kept for at least a minute and keys for a day; these are made due now.
	for _, clock := range []string{"retained", "forget"} {
		member := map[string]string{"retained": w.old, "forget": "old"}[clock]
		if err := w.Redis.ZAdd(w.Context(), w.Key(clock), redis.Z{Score: 2, Member: member}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	w.ids = append(append(ids, child...), more...)
	return w
}

func (w *work) settle(ids ...string) {
	w.Helper()
	outcomes := make([]queue.Outcome, len(ids))
	for i, id := range ids {
		outcomes[i] = queue.Outcome{ID: id, Epoch: 1, Verb: queue.Complete}
	}
	trip, err := claim.Of(w.Q).Settle(w.Context(), 0, "w", queue.NewCall(), outcomes, claim.Ask{})
	if err != nil {
		w.Fatal(err)
	}
	for _, v := range trip.Verdicts {
		if !v.Accepted() {
			w.Fatal(v)
		}
	}
}

// done reports whether the work that is due on a clock is done.
func (w *work) done(clock string) bool {
	switch clock {
	case "deadlines":
		return w.Record(w.late).TimedOut
	case "limits":
		return w.Record(w.queued).TimedOut
	case "delayed":
		return w.Record(w.delayed).AvailableAt.IsZero()
	case "workers":
		return w.Record(w.held).Status == queue.Pending
	case "draining":
		return w.Record(w.owner+".1").Status == queue.Cancelled
	case "retained":
		return w.Redis.Exists(w.Context(), w.Key("spec:"+w.old), w.Key("state:"+w.old)).Val() == 0
	case "forget":
		return !w.Redis.HExists(w.Context(), w.Key("idem"), "old").Val()
	}
	panic(clock)
}

// reaping runs a reaper for the rest of the test, and counts its sweeps.
func (w *work) reaping() *atomic.Int64 {
	var sweeps atomic.Int64
	w.Reap(reaper.Config{Observe: func(int, reaper.Swept) { sweeps.Add(1) }})
	return &sweeps
}

// complains checks that the log has one error, since a partition logs at most one in ten seconds,
// that it has the documented beginning, and that the log contains words.
func (w *work) complains(words ...string) {
	w.Helper()
	await.Until(w.T, "the error is logged", func() bool { return w.Logs.Count("level=ERROR") > 0 })
	text := w.Logs.String()
	if n := strings.Count(text, "Error timing out expired tasks: "); n != 1 || strings.Count(text, "level=ERROR") != 1 {
		w.Errorf("%d errors were logged, want one in ten seconds:\n%s", n, text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.Errorf("the log does not contain %q:\n%s", word, text)
		}
	}
}

// poisons are ways to ruin a record.
var poisons = []struct {
	name  string
	plant func(w *work, id string) error
}{
	{"string", func(w *work, id string) error { return w.write(id, "x", "") }},
	{"list", func(w *work, id string) error { return w.Redis.RPush(w.Context(), w.Key("spec:"+id), "x").Err() }},
	{"list-for-a-state", func(w *work, id string) error {
		return errors.Join(w.write(id, "k q 1 5 -\n\n", ""), w.Redis.RPush(w.Context(), w.Key("state:"+id), "x").Err())
	}},
	{"running-nowhere", func(w *work, id string) error {
		return w.write(id, "k q 1 5 -\n\n", "RUNNING 1 w 1 - - -\nlimit_at=5\n\n")
	}},
	{"running-for-nobody", func(w *work, id string) error { return w.write(id, "k q 1 5 -\n\n", "RUNNING - - - - - -\n\n") }},
	{"no-queue", func(w *work, id string) error { return w.write(id, "k 1 5 -\n\n", "") }},
	{"no-number", func(w *work, id string) error {
		return w.write(id, "k q 1 soon -\n\n", "PENDING - - - - - -\nlimit_at=soon\navailable_at=soon\n\n")
	}},
	{"no-number-in-a-line", func(w *work, id string) error {
		return w.write(id, "k q 1 5 -\n\n", "PENDING - - - - - -\nlimit_at=soon\navailable_at=soon\n\n")
	}},
	{"no-status", func(w *work, id string) error { return w.write(id, "k q 1 5 -\n\n", "- - - - - - -\n\n") }},
	{"odd-status", func(w *work, id string) error { return w.write(id, "k q 1 5 -\n\n", "TIMEOUT - - - - - -\n\n") }},
	{"no-record", func(w *work, id string) error { return nil }},
	{"no-spec", func(w *work, id string) error { return w.write(id, "", "RUNNING 1 w 1 - - -\n\n") }},
	{"no-end-of-the-head", func(w *work, id string) error {
		return w.write(id, "k q 1 5 -\n\n", "RUNNING 1 w 1 - - -\nprogress:900\n\nshort")
	}},
	{"not-a-number-at-all", func(w *work, id string) error {
		return w.write(id, "k q 1 nan -\n\n", "PENDING - - - - - -\nlimit_at=nan\n\n")
	}},
}

// write writes the spec and the state of a record, without those that are "".
func (w *work) write(id, spec, state string) error {
	var err error
	for key, text := range map[string]string{"spec:": spec, "state:": state} {
		if text != "" {
			err = errors.Join(err, w.Redis.Set(w.Context(), w.Key(key+id), text, 0).Err())
		}
	}
	return err
}

func TestPoisonHoldsUpNothing(t *testing.T) {
	t.Parallel()
	t.Run("at the head of every clock", func(t *testing.T) {
		t.Parallel()
		w := newWork(t)
		planted := 0
		for _, poison := range poisons {
			id := "0-" + poison.name
			if err := poison.plant(w, id); err != nil {
				t.Fatal(err)
			}
			for i, clock := range clocks {
				w.Redis.ZAdd(w.Context(), w.Key(clock), redis.Z{Score: float64(i), Member: id})
			}
			w.Redis.Set(w.Context(), w.Key("children:"+id), "x", 0)
			w.Redis.Set(w.Context(), w.Key("claims:"+id), "x", 0)
			w.Redis.Set(w.Context(), w.Key("worker:"+id), "x", 0)
			planted++
		}
		sweeps := w.reaping()
		for _, clock := range clocks {
			await.Until(t, "the work on the clock "+clock+" is done", func() bool { return w.done(clock) })
		}
		await.Until(t, "no ruined record is on a clock", func() bool {
			return w.Redis.ZCount(w.Context(), w.Key("deadlines"), "-inf", "100").Val()+w.Redis.ZCount(w.Context(), w.Key("limits"), "-inf", "100").Val()+
				w.Redis.ZCount(w.Context(), w.Key("delayed"), "-inf", "100").Val()+w.Redis.ZCount(w.Context(), w.Key("workers"), "-inf", "100").Val()+
				w.Redis.ZCount(w.Context(), w.Key("draining"), "-inf", "100").Val()+w.Redis.ZCount(w.Context(), w.Key("retained"), "-inf", "100").Val() == 0
		})
		w.complains()
		broken := w.Redis.ZCard(w.Context(), w.Key("broken")).Val()
		told := 0
		events := w.Events(w.Q)
		for _, e := range events {
			if e.Kind == "task_broken" {
				told++
				if e.Fields["error"] == "" {
					t.Errorf("the event task_broken of %s has no error", e.ID)
				}
			}
		}
		t.Logf("%d ruined records on %d clocks: %d marked as broken, %d events, %d sweeps", planted, len(clocks), broken, told, sweeps.Load())
		if broken < int64(planted)-1 || told < int(broken) { // a missing record is not broken
			t.Errorf("%d records are marked as broken, with %d events", broken, told)
		}
		// The reaper still ends new tasks.
		late := w.Enqueue(queue.Task{Kind: "late", Timeout: 50 * time.Millisecond})[0]
		await.Until(t, "a new task is timed out", func() bool { return w.Record(late).TimedOut })
		w.mend()
		w.Audit(w.Q)
	})

	for _, wrong := range clocks {
		t.Run("in the place of "+wrong, func(t *testing.T) {
			t.Parallel()
			w := newWork(t)
			mend := w.replace(w.Key(wrong))
			sweeps := w.reaping()
			for _, clock := range clocks {
				if clock != wrong {
					await.Until(t, "the work on the clock "+clock+" is done", func() bool { return w.done(clock) })
				}
			}
			w.complains(wrong, "WRONGTYPE")
			before, start := sweeps.Load(), time.Now()
			await.Until(t, "the reaper goes on", func() bool { return sweeps.Load() > before })
			until(start.Add(time.Second))
			if rate := float64(sweeps.Load()-before) / time.Since(start).Seconds(); rate > 60 {
				t.Errorf("with a clock that cannot be read there are %.0f sweeps a second, want 60 at most", rate)
			}
			if w.done(wrong) {
				t.Errorf("the work on the clock %s is done though the clock cannot be read", wrong)
			}
			// When the key is restored, its work is done.
			mend()
			await.Until(t, "the work on the clock "+wrong+" is done", func() bool { return w.done(wrong) })
			w.complains()
		})
	}

	t.Run("in the place of the root", func(t *testing.T) {
		t.Parallel()
		w := newWork(t)
		sweeps := w.reaping()
		await.Until(t, "the reaper sweeps", func() bool { return sweeps.Load() > 0 })
		mend := w.replace(w.Q.Root(0))
		w.complains("WRONGTYPE")
		mend()
		for _, clock := range clocks {
			await.Until(t, "the work on the clock "+clock+" is done", func() bool { return w.done(clock) })
		}
		w.complains()
	})
}

// replace replaces a key by a string, until mend is called. It does so in a transaction: a reaper
// that found no key would log that error, and then no other one for ten seconds.
func (w *work) replace(key string) (mend func()) {
	w.Helper()
	_, err := w.Redis.TxPipelined(w.Context(), func(p redis.Pipeliner) error {
		p.Rename(w.Context(), key, key+"-saved")
		p.Set(w.Context(), key, "x", 0)
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return func() {
		w.Helper()
		if err := w.Redis.Rename(w.Context(), key+"-saved", key).Err(); err != nil {
			w.Fatal(err)
		}
	}
}

// mend removes the ruined records, as an operator would.
func (w *work) mend() {
	for _, poison := range poisons {
		id := "0-" + poison.name
		for _, key := range []string{"spec:", "state:", "result:", "children:", "claims:", "worker:"} {
			w.Redis.Del(w.Context(), w.Key(key+id))
		}
		for _, clock := range append([]string{"broken"}, clocks...) {
			w.Redis.ZRem(w.Context(), w.Key(clock), id)
		}
		w.Redis.HDel(w.Context(), w.Key("idem"), id)
	}
}
