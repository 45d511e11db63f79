package races

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// scramble is a set of tasks that completers, cancellers and reapers all try to end at about their
// deadlines.
type scramble struct {
	*stage
	ids       []string
	deadlines []time.Time
	last      time.Time

	mu       sync.Mutex
	refusals []turnedDown
	stale    int // how many attempts to end a task were refused
}

// turnedDown is the reply to a caller that could not end a task.
type turnedDown struct {
	id     string
	status queue.Status
	note   *string // result or error of the task; nil if the reply does not have it
}

func TestEveryTaskEndsOnce(t *testing.T) { again(t, testEveryTaskEndsOnce) }

// testEveryTaskEndsOnce plays until each side has won some of the races. On a busy machine the reapers win nearly all of them if
// the deadlines are close together, so each time these are further apart.
func testEveryTaskEndsOnce(t *testing.T) {
	var unfair []string
	for _, spacing := range []time.Duration{300 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond} {
		if unfair = scrambleFor(t, spacing); len(unfair) == 0 || t.Failed() {
			return
		}
		t.Logf("with deadlines %v apart: %s", spacing, unfair)
	}
	t.Errorf("this test shows nothing: %s", unfair)
}

// scrambleFor lets all callers race for tasks whose deadlines are spacing apart, and checks that each task ended once. It returns
// which sides won too few races.
func scrambleFor(t *testing.T, spacing time.Duration) (unfair []string) {
	n := min(harness.Times(2000, 4000, 10_000), int(6*time.Second/spacing))
	s := &scramble{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{})}
	// All clients open the namespace before the first deadline, because that takes time.
	var there []*queue.Queue
	for range 8 + 4 + 2 {
		there = append(there, s.Another())
	}
	next := func() *queue.Queue { q := there[0]; there = there[1:]; return q }
	first := time.Now().Add(time.Second)
	var tasks []queue.Task
	for i := range n {
		tasks = append(tasks, queue.Task{Kind: "k", Deadline: first.Add(time.Duration(i) * spacing).Truncate(time.Millisecond), MaxRetries: 9, Backoff: queue.Backoff{Delay: queue.None}})
		s.deadlines = append(s.deadlines, tasks[i].Deadline)
	}
	s.ids = s.Enqueue(tasks...)
	s.last = s.deadlines[n-1]

	var group sync.WaitGroup
	for i := range 8 {
		q := next()
		group.Go(func() { s.completer(q, fmt.Sprint("completer", i)) })
	}
	for i := range 4 {
		q := next()
		group.Go(func() { s.canceller(q, i) })
	}
	var swept atomic.Int64
	observe := func(_ int, did reaper.Swept) { swept.Add(int64(did.TimedOut)) }
	for range 2 {
		s.Reap(reaper.Config{Batch: 10, Observe: observe})
	}
	for i := range 2 { // two more that sweep without the turn
		q := next()
		s.Run(func(reap context.Context) error { return sweepEagerly(reap, q, fmt.Sprint("eager", i), observe) })
	}
	group.Wait()
	await.Until(t, "all tasks with deadlines have ended", func() bool { return s.zcard("deadlines") == 0 })

	records := s.account(s.ids)
	s.checkTold(records)
	return s.checkMix(records, int(swept.Load()))
}

// completer fetches lists of tasks, and settles each list at about the deadline of its middle task.
func (s *scramble) completer(q *queue.Queue, name string) {
	const lease = time.Minute
	for seq := int64(1); ; seq++ {
		trip, err := claim.Of(q).Fetch(s.Context(), 0, name, ask(seq, 20, lease))
		if err != nil {
			s.Error(err)
			return
		}
		if len(trip.Claims) == 0 {
			if time.Now().After(s.last) {
				break
			}
			if _, err := claim.Of(q).WakeLine(0, []string{"default"}).Await(s.Context(), time.Second); err != nil {
				s.Error(err)
				return
			}
			continue
		}
		middle := trip.Claims[len(trip.Claims)/2].Deadline
		until(middle.Add(time.Duration(rand.IntN(4)-2) * time.Millisecond))
		outcomes := make([]queue.Outcome, len(trip.Claims))
		for i, c := range trip.Claims {
			outcomes[i] = queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete, Result: fmt.Append(nil, name, "/", c.Epoch)}
			switch rand.IntN(10) {
			case 0:
				outcomes[i] = queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Fail, Class: queue.ClassFailed, Error: fmt.Sprint(name, "/", c.Epoch)}
			case 1:
				outcomes[i] = queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Release}
			case 2:
				outcomes[i] = queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Fail, Error: "again"}
			}
		}
		settled, err := claim.Of(q).Settle(s.Context(), 0, name, queue.NewCall(), outcomes, claim.Ask{})
		if err != nil {
			s.Error(err)
			return
		}
		s.note(outcomes, settled.Verdicts)
		if seq%4 == 0 {
			s.haunt(q, name, outcomes)
		}
	}
	if _, err := claim.Of(q).Heartbeat(s.Context(), 0, name, 0, 0, nil); err != nil {
		s.Error(err)
	}
}

// haunt settles tasks a second time, as a worker would that was stopped in between. It is a new call, so
// every report must be refused.
func (s *scramble) haunt(q *queue.Queue, name string, outcomes []queue.Outcome) {
	for i := range outcomes {
		outcomes[i] = queue.Outcome{ID: outcomes[i].ID, Epoch: outcomes[i].Epoch, Verb: queue.Complete, Result: []byte("ghost")}
	}
	haunted, err := claim.Of(q).Settle(s.Context(), 0, name, queue.NewCall(), outcomes, claim.Ask{})
	if err != nil {
		s.Error(err)
		return
	}
	for i, v := range haunted.Verdicts {
		if v.Accepted() {
			s.Errorf("claim %d of %s was settled twice: %v", outcomes[i].Epoch, outcomes[i].ID, v)
		}
	}
	s.note(outcomes, haunted.Verdicts)
}

func (s *scramble) note(outcomes []queue.Outcome, verdicts []queue.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, v := range verdicts {
		o := outcomes[i]
		switch {
		case !v.Accepted():
			s.stale++
			s.refusals = append(s.refusals, turnedDown{id: o.ID, status: v.Status})
		case o.Verb == queue.Complete:
			s.Ledger.Tell(o.ID, harness.End{Status: queue.Completed, Note: string(o.Result)})
		case o.Verb == queue.Fail && v.Status == queue.Failed:
			s.Ledger.Tell(o.ID, harness.End{Status: queue.Failed, Note: o.Error})
		}
	}
}

// canceller cancels one task in three, a few milliseconds before, at or after its deadline. One in five
// of these is cancelled by every canceller.
func (s *scramble) canceller(q *queue.Queue, me int) {
	reason := fmt.Sprint("canceller", me)
	for next := 0; next < len(s.ids); {
		lead := time.Duration(rand.IntN(8)-2) * time.Millisecond
		var mine []string
		for now := time.Now().Add(lead); next < len(s.ids) && s.deadlines[next].Before(now); next++ {
			if next%15 == 0 || next%3 == 0 && next/3%4 == me {
				mine = append(mine, s.ids[next])
			}
		}
		if len(mine) > 0 {
			answers, err := q.CancelAll(s.Context(), mine, reason)
			if err != nil {
				s.Error(err)
				return
			}
			s.noteCancelled(mine, answers, reason)
		}
		until(time.Now().Add(3 * time.Millisecond))
	}
}

func (s *scramble) noteCancelled(ids []string, answers []queue.Cancellation, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range answers {
		switch {
		case c.Err != nil:
			s.Error(c.Err)
		case c.Done:
			s.Ledger.Tell(ids[i], harness.End{Status: queue.Cancelled, Note: reason})
		default:
			note := c.Error
			if c.Status == queue.Completed {
				note = string(c.Result)
			}
			s.stale++
			s.refusals = append(s.refusals, turnedDown{ids[i], c.Status, &note})
		}
	}
}

// sweepEagerly sweeps every 2 ms without waiting for the turn.
func sweepEagerly(ctx context.Context, q *queue.Queue, name string, observe func(int, reaper.Swept)) error {
	for ctx.Err() == nil {
		swept, err := reaper.Sweep(ctx, q, 0, name, 7, 500*time.Millisecond)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		observe(0, swept)
		until(time.Now().Add(min(swept.Wait, 2*time.Millisecond)))
	}
	return nil
}

// checkTold checks that the replies to callers are true, and that at most one caller ended each task.
func (s *scramble) checkTold(records map[string]*queue.Record) {
	ledger := s.Ledger.Copy()
	s.AsTold(ledger, records, func(string) bool { return false })
	for id, r := range records {
		switch told := ledger.Told[id]; {
		case len(told) > 1:
			s.Complain("%d callers got the reply that they ended %s: %v", len(told), id, told)
		case len(told) == 0 && !r.TimedOut:
			s.Complain("%s ended as %v, but no caller got the reply that it ended the task", id, harness.EndOf(r))
		}
	}
	for _, refused := range s.refusals {
		is := harness.EndOf(records[refused.id])
		if refused.status.Ended() && refused.status != is.Status || refused.note != nil && *refused.note != is.Note {
			s.Complain("a caller was refused because %s had ended as %s %v, but the record has %v", refused.id, refused.status, refused.note, is)
		}
	}
}

// checkMix returns which sides won too few races.
func (s *scramble) checkMix(records map[string]*queue.Record, swept int) (unfair []string) {
	count := map[string]int{}
	again := 0
	for _, r := range records {
		count[endOf(r)]++
		if r.Epoch > 1 {
			again++
		}
	}
	s.Logf("%d tasks: %v; %d claimed more than once; %d ended by reapers; %d refusals",
		len(records), count, again, swept, s.stale)
	for kind, least := range map[string]int{"task_completed": 50, "task_timed_out": 50, "task_cancelled": 50, "task_failed": 200} {
		if count[kind] < len(records)/least {
			unfair = append(unfair, fmt.Sprintf("only %d of %d are %s", count[kind], len(records), kind))
		}
	}
	if s.stale < len(records)/50 {
		unfair = append(unfair, fmt.Sprintf("only %d refusals", s.stale))
	}
	if swept == 0 || swept > count["task_timed_out"] {
		s.Errorf("the reapers counted %d timeouts, but %d tasks timed out", swept, count["task_timed_out"])
	}
	return unfair
}
