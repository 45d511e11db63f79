package races

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// bout is one round: an agent that a worker runs, and the members of its wait.
type bout struct {
	*lane
	agent  queue.Claim
	worker string
	begun  time.Time // before the members were created, by the clock of Redis
	claims []queue.Claim
	names  []string
	wait   claim.Wait
	brief  bool // the agent has a short deadline, which a busy machine can miss
}

// bout creates an agent with n members, all running. It returns nil if that failed, or if an agent
// with a short deadline has already ended.
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
		l.Errorf("fetch claimed %d agents, want 1", len(claims))
		return nil
	}
	b.agent, b.begun = claims[0], claims[0].Now
	if !b.hire(n, queue.Task{}) {
		return nil
	}
	return b
}

// hire creates n members, and claims them for a worker.
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
		b.Errorf("fetch claimed %d members, want %d", len(claims), n)
		return false
	}
	for _, t := range tasks {
		b.names = append(b.names, t.ID[len(b.agent.ID)+1:])
		b.wait.Members = append(b.wait.Members, claim.Member{ID: t.ID})
	}
	b.claims = append(b.claims, claims...)
	return true
}

// more creates members and leaves them in their line.
func (b *bout) more(n int) {
	var tasks []queue.Task
	for i := range n {
		name := fmt.Sprint("m", i)
		tasks = append(tasks, queue.Task{ID: b.agent.ID + "." + name, Kind: "member", Queue: b.members()})
		b.names = append(b.names, name)
		b.wait.Members = append(b.wait.Members, claim.Member{ID: tasks[i].ID})
	}
	b.enlist(tasks)
}

func (l *lane) hired() string { return l.name + "-hired" }

// suspend suspends the agent. It returns the outcome if the wait is already over.
func (b *bout) suspend(hand int, children ...queue.Task) (answer *queue.WaitOutcome, err error) {
	b.wait.Entry, b.wait.Digest, b.wait.Label = 1, "digest", "the wait"
	return claim.Of(b.hands[hand]).Suspend(b.Context(), claim.Suspension{Agent: b.agent.ID, Epoch: b.agent.Epoch, Worker: b.worker,
		Wait: b.wait, Children: children})
}

// waits suspends the agent, which must then wait.
func (b *bout) waits() bool {
	answer, err := b.suspend(0)
	if err != nil || answer != nil {
		b.Errorf("Suspend = %v, %v, want nil: the agent waits", answer, err)
	}
	return err == nil && answer == nil
}

// end reports a member's end by its worker, and returns whether the report was accepted.
func (b *bout) end(hand, member int, verb queue.Verb) bool {
	c := b.claims[member]
	return b.report(hand, b.hired(), queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: verb, Error: "it failed"})
}

func (l *lane) report(hand int, worker string, o queue.Outcome) bool {
	trip, err := claim.Of(l.hands[hand]).Settle(l.Context(), 0, worker, queue.NewCall(), []queue.Outcome{o}, claim.Ask{})
	return l.must(err) && trip.Verdicts[0].Accepted()
}

// sweep sweeps once, and fails the test on errors.
func (l *lane) sweep(hand int) reaper.Swept {
	swept, err := reaper.Sweep(l.Context(), l.hands[hand], 0, fmt.Sprint(l.name, "-reaper", hand), 100, fallback)
	l.must(err)
	for _, e := range swept.Errors {
		l.Error(e)
	}
	return swept
}

// either returns a random verb, mostly Complete.
func either() queue.Verb {
	if rand.IntN(3) == 0 {
		return queue.Fail
	}
	return queue.Complete
}
