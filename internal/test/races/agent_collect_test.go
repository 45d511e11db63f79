package races

import (
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// collector makes an agent that collects, with two members that run.
func (l *lane) collector() *bout {
	b := l.bout(queue.Task{}, 2)
	if b == nil || !b.must(claim.Of(b.hands[0]).Remember(b.Context(), b.agent.ID, b.agent.Epoch, b.worker,
		claim.Note{Entries: []claim.Entry{{Number: 1, Text: []byte("collect")}}})) {
		return nil
	}
	return b
}

// next makes the agent come to its next wait. It returns the outcome if the wait is over at once.
func (b *bout) next(hand int, entry int64) (*queue.WaitOutcome, error) {
	w := claim.Wait{Mode: queue.WaitCollect, Entry: entry, Digest: "digest", Label: "the next end"}
	return claim.Of(b.hands[hand]).Suspend(b.Context(), claim.Suspension{Agent: b.agent.ID, Epoch: b.agent.Epoch, Worker: b.worker, Wait: w})
}

// gather takes what each wait hands over, from an entry on, until the agent has a number of ends. answer is that of the
// wait at this entry; nil: the agent waits.
func (b *bout) gather(answer *queue.WaitOutcome, entry int64, want int) (got []string) {
	for {
		if answer == nil { // a wait that an end has decided puts the agent in line
			claims := b.take(0, b.worker, b.agents(), 1, time.Minute)
			if len(claims) != 1 || claims[0].ID != b.agent.ID {
				b.Errorf("the agent has %v of %d ends, and was not woken by the others", got, want)
				return got
			}
			b.agent = claims[0]
		}
		o, err := b.next(0, entry)
		if !b.must(err) || o == nil {
			b.Errorf("entry %d of the woken agent has no result", entry)
			return got
		}
		if got = append(got, o.Settled...); len(got) >= want {
			return got
		}
		entry++
		if answer, err = b.next(0, entry); !b.must(err) {
			return got
		}
	}
}

// each checks that each member was handed over once, and ends the agent.
func (b *bout) each(got []string) {
	sorted := slices.Sorted(slices.Values(got))
	if want := slices.Sorted(slices.Values(b.names)); !slices.Equal(sorted, want) {
		b.Errorf("the agent was given the ends of %v, want each of %v once", got, want)
	}
	b.report(0, b.worker, queue.Outcome{ID: b.agent.ID, Epoch: b.agent.Epoch, Verb: queue.Complete})
}

func TestTwoEndsAreHandedOverOnceEach(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 4, func(l *lane) string {
		b := l.collector()
		if b == nil {
			return "nothing"
		}
		answer, err := b.next(0, 2)
		if !l.must(err) || answer != nil {
			return "nothing"
		}
		l.meet(func() { b.end(1, 0, either()) }, func() { b.end(2, 1, either()) }, func() { l.sweep(3) })
		got := b.gather(nil, 2, 2)
		b.each(got)
		if len(got) > 0 && got[0] == b.names[0] {
			return "the first"
		}
		return "the second"
	}, "the first", "the second")
}

func TestAnEndMeetsTheWaitThatCollectsIt(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 4, func(l *lane) string {
		b := l.collector()
		if b == nil {
			return "nothing"
		}
		var answer *queue.WaitOutcome
		var err error
		l.meet(func() { answer, err = b.next(0, 2) }, func() { b.end(1, 0, either()) }, func() { b.end(2, 1, either()) })
		if !l.must(err) {
			return "nothing"
		}
		b.each(b.gather(answer, 2, 2))
		if answer == nil {
			return "woken"
		}
		return "ready"
	}, "woken", "ready")
}
