package races

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// bout is one round: an agent that a worker runs, and members of a wait of it.
type bout struct {
	*lane
	agent  queue.Claim
	worker string
	begun  time.Time // by the clock of Redis, before the members were made
	claims []queue.Claim
	names  []string
	wait   queue.Wait
	brief  bool // the agent has a deadline that a busy machine may not meet
}

// bout makes an agent with n members, all running. It returns nil if that failed, or an
// agent that is to end soon has ended by then.
func (l *lane) bout(agent queue.Task, n int) *bout {
	agent.Kind, agent.Queue = "agent", l.agents()
	b := &bout{lane: l, worker: l.name + "-worker", brief: agent.Timeout > 0}
	if l.enlist([]queue.Task{agent}) == nil {
		return nil
	}
	claims := l.take(0, b.worker, l.agents(), 1, time.Minute)
	if len(claims) == 0 && b.brief {
		return nil
	}
	if len(claims) != 1 {
		l.Errorf("%d agents were claimed, want 1", len(claims))
		return nil
	}
	b.agent, b.begun = claims[0], claims[0].Now
	if !b.hire(n, queue.Task{}) {
		return nil
	}
	return b
}

// hire makes n members, and has a worker run them.
func (b *bout) hire(n int, like queue.Task) bool {
	if n == 0 {
		return true
	}
	like.Kind, like.Queue = "member", b.members()
	var tasks []queue.Task
	for i := range n {
		like.ID = fmt.Sprintf("%s.%d", b.agent.ID, len(b.names)+i+1)
		tasks = append(tasks, like)
	}
	receipts, err := b.hands[0].EnqueueAll(b.Context(), tasks)
	if !b.must(err) {
		return false
	}
	for _, r := range receipts {
		if b.brief && errors.Is(r.Err, refusal.ErrOwnerEnded) {
			return false
		}
		b.must(r.Err)
		b.known(r.ID)
	}
	claims := b.take(0, b.hired(), b.members(), n, time.Minute)
	if b.brief && len(claims) < n {
		return false
	}
	if len(claims) != n {
		b.Errorf("%d members were claimed, want %d", len(claims), n)
		return false
	}
	for _, t := range tasks {
		b.names = append(b.names, t.ID[len(b.agent.ID)+1:])
		b.wait.Members = append(b.wait.Members, queue.Member{ID: t.ID})
	}
	b.claims = append(b.claims, claims...)
	return true
}

// more makes members, in lists, and leaves them in their line.
func (b *bout) more(n int) {
	var tasks []queue.Task
	for i := range n {
		name := fmt.Sprint("m", i)
		tasks = append(tasks, queue.Task{ID: b.agent.ID + "." + name, Kind: "member", Queue: b.members()})
		b.names = append(b.names, name)
		b.wait.Members = append(b.wait.Members, queue.Member{ID: tasks[i].ID})
	}
	b.enlist(tasks)
}

func (l *lane) hired() string { return l.name + "-hired" }

// suspend has the agent wait, and returns the answer if it need not.
func (b *bout) suspend(hand int, children ...queue.Task) (answer *queue.WaitOutcome, err error) {
	b.wait.Entry, b.wait.Digest, b.wait.Label = 1, "digest", "the wait"
	return b.hands[hand].Attempts().Suspend(b.Context(), queue.Suspension{Agent: b.agent.ID, Epoch: b.agent.Epoch, Worker: b.worker,
		Wait: b.wait, Children: children})
}

// waits has the agent wait, where nothing may be in the way of that.
func (b *bout) waits() bool {
	answer, err := b.suspend(0)
	if err != nil || answer != nil {
		b.Errorf("suspend = %v, %v, want that the agent waits", answer, err)
	}
	return err == nil && answer == nil
}

// end has a member end, as its worker says; it tells whether that was taken.
func (b *bout) end(hand, member int, verb queue.Verb) bool {
	c := b.claims[member]
	return b.report(hand, b.hired(), queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: verb, Error: "it failed"})
}

func (l *lane) report(hand int, worker string, o queue.Outcome) bool {
	trip, err := l.hands[hand].Attempts().Settle(l.Context(), 0, worker, queue.NewCall(), []queue.Outcome{o}, queue.Ask{})
	return l.must(err) && trip.Verdicts[0].Accepted()
}

// sweep is what a reaper does.
func (l *lane) sweep(hand int) reaper.Swept {
	swept, err := reaper.Sweep(l.Context(), l.hands[hand], 0, fmt.Sprint(l.name, "-reaper", hand), 100, fallback)
	l.must(err)
	for _, e := range swept.Errors {
		l.Error(e)
	}
	return swept
}

// either is a verb by chance: mostly Complete.
func either() queue.Verb {
	if rand.IntN(3) == 0 {
		return queue.Fail
	}
	return queue.Complete
}
