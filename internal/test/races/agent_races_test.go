package races

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// pick returns a random argument.
func pick[T any](of ...T) T { return of[rand.IntN(len(of))] }

func TestTheLastMemberEndsWhileItsWaitIsRegistered(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 4, func(l *lane) string {
		b := l.bout(queue.Task{}, 3)
		if b == nil {
			return "nothing"
		}
		b.wait.Mode = pick(queue.WaitAll, queue.WaitFailFast, queue.WaitSettled, queue.WaitNOfM, queue.WaitAny, queue.WaitAnyOK)
		if b.wait.Mode == queue.WaitNOfM {
			b.wait.Need = 2
		}
		b.wait.CancelLosers = rand.IntN(2) == 0
		first := rand.IntN(3)
		for i := range first {
			b.end(0, i, either())
		}
		var answer *queue.WaitOutcome
		var err error
		sides := []func(){func() { answer, err = b.suspend(0) }}
		for i := first; i < 3; i++ {
			sides = append(sides, func() { b.end(1+i, i, either()) })
		}
		l.meet(sides...)
		if !l.must(err) {
			return "nothing"
		}
		b.resume(answer)
		if answer == nil {
			return "woken"
		}
		return "ready"
	}, "woken", "ready")
}

func TestTwoMembersEndAtOnce(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 4, func(l *lane) string {
		b := l.bout(queue.Task{}, 4)
		if b == nil {
			return "nothing"
		}
		b.wait.Mode = pick(queue.WaitAny, queue.WaitAnyOK, queue.WaitNOfM, queue.WaitNSettled, queue.WaitFailFast)
		if b.wait.Mode == queue.WaitNOfM || b.wait.Mode == queue.WaitNSettled {
			b.wait.Need = 2
			b.end(0, 3, queue.Complete)
		}
		b.wait.CancelLosers = rand.IntN(2) == 0
		if !b.waits() {
			return "nothing"
		}
		verb := queue.Complete
		if b.wait.Mode == queue.WaitFailFast {
			verb = queue.Fail
		}
		var first, second bool
		l.meet(func() { first = b.end(1, 0, verb) }, func() { second = b.end(2, 1, verb) })
		o := b.resume(nil)
		if !first && !second || !b.wait.CancelLosers && !(first && second) {
			b.Errorf("%s: the first end was accepted: %v, the second: %v", b.wait.Mode, first, second)
		}
		return map[string]string{b.names[0]: "the first", b.names[1]: "the second"}[o.Winner]
	}, "the first", "the second")
}

func TestAnAgentIsCancelledWhenItWakes(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 4, func(l *lane) string {
		b := l.bout(queue.Task{}, 2)
		if b == nil {
			return "nothing"
		}
		b.wait.Mode = queue.WaitAll
		b.end(0, 0, queue.Complete)
		if !b.waits() {
			return "nothing"
		}
		var last bool
		var got []queue.Claim
		l.meet(func() { last = b.end(1, 1, queue.Complete) },
			func() {
				c, err := b.hands[2].Cancel(b.Context(), b.agent.ID, "enough")
				if b.must(err) && !c.Done {
					b.Errorf("Cancel of an agent that has not ended = %+v, want Done", c)
				}
			},
			func() { got = b.take(3, b.worker, b.agents(), 1, time.Minute) })
		if b.state() != queue.Cancelled {
			b.Errorf("the cancelled agent is %s", b.state())
		}
		switch {
		case !last && len(got) > 0:
			b.Errorf("the agent ran again though its last member had not ended")
		case !last:
			return "cancelled before it woke"
		case len(got) > 0:
			return "cancelled when it ran again"
		}
		return "cancelled when it was woken"
	}, "cancelled before it woke", "cancelled when it was woken")
}

func TestAMemberIsCancelledWhenItCompletes(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 4, func(l *lane) string {
		b := l.bout(queue.Task{}, 3)
		if b == nil {
			return "nothing"
		}
		b.wait.Mode = pick(queue.WaitAll, queue.WaitFailFast, queue.WaitAnyOK, queue.WaitNOfM)
		if b.wait.Mode == queue.WaitNOfM {
			b.wait.Need = 3
		}
		b.end(0, 0, queue.Fail)
		if b.wait.Mode == queue.WaitFailFast || b.wait.Mode == queue.WaitNOfM {
			b.wait.Members, b.names = b.wait.Members[1:], b.names[1:]
			b.wait.Need = min(b.wait.Need, 2)
		}
		if b.wait.Mode == queue.WaitAll {
			b.wait.Mode = queue.WaitSettled
		}
		if !b.waits() {
			return "nothing"
		}
		// Two members, each both cancelled and completed.
		var completed, cancelled [2]bool
		var sides []func()
		for i := range 2 {
			sides = append(sides, func() { completed[i] = b.end(i, 1+i, queue.Complete) }, func() {
				c, err := b.hands[2+i].Cancel(b.Context(), b.claims[1+i].ID, "enough")
				cancelled[i] = b.must(err) && c.Done
			})
		}
		l.meet(sides...)
		for i := range 2 {
			if completed[i] == cancelled[i] {
				b.Errorf("%s: the completion was accepted: %v, the cancel: %v; want one of them", b.claims[1+i].ID, completed[i], cancelled[i])
			}
		}
		b.resume(nil)
		if completed[0] {
			return "completed"
		}
		return "cancelled"
	}, "completed", "cancelled")
}
