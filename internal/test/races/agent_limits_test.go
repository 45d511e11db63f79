package races

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestAWaitComesToItsLimitWhenItsLastMemberEnds(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 8, func(l *lane) string {
		b := l.bout(queue.Task{}, 2)
		if b == nil {
			return "nothing"
		}
		b.wait.Mode, b.wait.Limit = pick(queue.WaitAll, queue.WaitAny, queue.WaitSettled), l.slower(8*time.Millisecond)
		b.wait.KeepPending, b.wait.Proceed = rand.IntN(2) == 0, rand.IntN(2) == 0
		b.wait.CancelLosers = rand.IntN(2) == 0
		b.wait.FromFirst = b.wait.Mode != queue.WaitAny && rand.IntN(2) == 0
		if b.wait.Mode != queue.WaitAny {
			b.end(0, 0, queue.Complete)
		}
		start := time.Now()
		if !b.waits() {
			return "nothing"
		}
		limit := start.Add(b.wait.Limit)
		l.meet(func() { near(limit, l.slower(time.Millisecond), l.slower(2*time.Millisecond)); b.end(1, 1, either()) },
			func() { near(limit, 0, l.slower(3*time.Millisecond)); b.sweep(2) },
			func() { near(limit, 0, l.slower(3*time.Millisecond)); b.sweep(3) })
		await.Until(l.T, "the wait is over", func() bool { b.sweep(2); return b.state() != queue.Waiting })
		return b.resume(nil).Reason
	}, "satisfied", "timed_out")
}

func TestAnAgentComesToItsDeadlineWhenItWakes(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 8, func(l *lane) string {
		l.time = max(l.time*9/10, 20*time.Millisecond)
		b := l.bout(queue.Task{Timeout: l.time}, 2)
		if b == nil {
			l.time *= 3 // a busy machine; the end of the test checks that all tasks have ended
			return "too late"
		}
		b.wait.Mode = pick(queue.WaitAll, queue.WaitAny)
		if b.wait.Mode == queue.WaitAll {
			b.end(0, 0, queue.Complete)
		}
		if answer, err := b.suspend(0); err != nil {
			l.time *= 3
			return "too late"
		} else if answer != nil {
			b.Errorf("suspend = %v", answer)
		}
		deadline := b.agent.Deadline
		last, done := false, false
		l.meet(func() {
			near(deadline, 8*l.spread, time.Millisecond) // a busy machine needs a greater lead to complete the agent
			last = b.end(1, 1, queue.Complete)
			for _, c := range b.take(1, b.worker, b.agents(), 1, time.Minute) {
				done = b.report(1, b.worker, queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete})
			}
		},
			func() { near(deadline, 0, 2*time.Millisecond); b.sweep(2) },
			func() { near(deadline, 0, 2*time.Millisecond); b.sweep(3) })
		await.Until(l.T, "the agent has ended", func() bool { b.sweep(2); return b.state().Ended() })
		switch status := b.state(); {
		case done != (status == queue.Completed), done && !last:
			b.Errorf("the last member's end was accepted: %v, the agent's: %v; the agent is %s", last, done, status)
		case done:
			return "completed"
		case last:
			return "woken and timed out"
		}
		return "timed out"
	}, "completed", "timed out")
}

func TestAnAgentIsSignalledWhenItsWaitIsRegistered(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 4, func(l *lane) string {
		b := l.bout(queue.Task{}, 0)
		if b == nil {
			return "nothing"
		}
		promise := b.expectSignal()
		var answer *queue.WaitOutcome
		var err error
		l.meet(func() { answer, err = b.suspend(0, promise) }, func() { b.signal(1, "hello") })
		if !l.must(err) {
			return "nothing"
		}
		b.signalled(answer, "hello")
		if answer == nil {
			return "woken"
		}
		return "ready"
	}, "woken", "ready")
}

func TestASignalComesAtTheLimitOfItsWait(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 8, func(l *lane) string {
		b := l.bout(queue.Task{}, 0)
		if b == nil {
			return "nothing"
		}
		promise := b.expectSignal()
		b.wait.Limit, b.wait.KeepPending = l.slower(8*time.Millisecond), rand.IntN(2) == 0
		start := time.Now()
		if answer, err := b.suspend(0, promise); err != nil || answer != nil {
			b.Errorf("suspend = %v, %v", answer, err)
			return "nothing"
		}
		limit := start.Add(b.wait.Limit)
		var told bool
		l.meet(func() {
			near(limit, l.slower(time.Millisecond), l.slower(2*time.Millisecond))
			told = b.signal(1, "hello")
		},
			func() { near(limit, 0, l.slower(3*time.Millisecond)); b.sweep(2) },
			func() { near(limit, 0, l.slower(3*time.Millisecond)); b.sweep(3) })
		await.Until(l.T, "the wait is over", func() bool { b.sweep(2); return b.state() != queue.Waiting })
		o := b.signalled(nil, "hello")
		if o.Reason == "satisfied" && !told {
			b.Errorf("the wait ended by the signal, but Signal said that it was refused")
		}
		return o.Reason
	}, "satisfied", "timed_out")
}

// expectSignal makes the promise of a signal the only member of the wait, and returns it.
func (b *bout) expectSignal() queue.Task {
	id := b.agent.ID + ".s-go"
	b.wait.Mode = queue.WaitAll
	b.wait.Members, b.names = []claim.Member{{ID: id}}, []string{"s-go"}
	b.known(id)
	return queue.Task{ID: id, Kind: "signal", Queue: b.agents(), Promise: true}
}

func (b *bout) signal(hand int, text string) (told bool) {
	r, err := b.hands[hand].Signal(b.Context(), b.agent.ID, "go", []byte(text))
	return b.must(err) && r.Done
}

// signalled is like resume, and checks the payload of a signal that the wait has counted.
func (b *bout) signalled(answer *queue.WaitOutcome, text string) queue.WaitOutcome {
	o := b.resume(answer)
	r, err := b.hands[0].Get(b.Context(), b.agent.ID+".s-go")
	if b.must(err) && len(o.Settled) == 1 && string(r.Result) != text {
		b.Errorf("the payload of the signal is %q, want %q", r.Result, text)
	}
	return o
}

func TestAWorkerIsGivenUpWhenItsAgentBeginsToWait(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	race(t, 8, func(l *lane) string {
		lease := l.slower(6 * time.Millisecond)
		b := l.bout(queue.Task{}, 1)
		if b == nil {
			return "nothing"
		}
		b.wait.Mode = queue.WaitAll
		start := time.Now()
		b.take(0, b.worker, "nobody", 0, lease) // renews its lease
		over := start.Add(lease)
		var answer *queue.WaitOutcome
		var err error
		var claims []queue.Claim
		next := b.name + "-next"
		l.meet(func() {
			near(over, l.slower(time.Millisecond), l.slower(3*time.Millisecond))
			answer, err = b.suspend(0)
		},
			func() { near(over, 0, l.slower(2*time.Millisecond)); b.sweep(2) },
			func() {
				near(over, 0, l.slower(2*time.Millisecond))
				b.sweep(3)
				claims = b.take(3, next, b.agents(), 2, time.Minute)
			})
		b.end(0, 0, queue.Complete)
		if errors.Is(err, refusal.ErrNotHeld) { // another worker has to begin the wait
			claims = append(claims, b.take(1, next, b.agents(), 2, time.Minute)...)
			if len(claims) != 1 || claims[0].ID != b.agent.ID || claims[0].LeaseLosses != 1 {
				b.Errorf("the claims of the agent whose worker lost its lease are %+v, want one after a lost lease", claims)
				return "nothing"
			}
			b.agent, b.worker = claims[0], next
			answer, err = b.suspend(1)
			if b.must(err); answer == nil {
				b.Errorf("the agent waits though its only member has ended")
			}
			b.resume(answer)
			return "given up"
		}
		if len(claims) > 0 {
			b.Errorf("%s was claimed as %+v, but Suspend = %v", b.agent.ID, claims, err)
			return "nothing"
		}
		if b.must(err) && answer != nil {
			b.Errorf("suspend = %v", answer)
		}
		b.resume(answer)
		return "waiting"
	}, "given up", "waiting")
}
