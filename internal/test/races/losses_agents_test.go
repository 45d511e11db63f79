package races

import (
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// pause returns a suspension that creates the two members of its wait.
func pause(agent string) claim.Suspension {
	return claim.Suspension{Agent: agent, Epoch: 1, Worker: "w",
		Wait: claim.Wait{Entry: 2, Mode: queue.WaitAny, Digest: "d", Label: "l", Limit: 10 * time.Second, CancelLosers: true,
			Members: []claim.Member{{ID: agent + ".1", Patience: 5 * time.Second}, {ID: agent + ".2"}}},
		Note: claim.Note{Checkpoint: &queue.Checkpoint{State: []byte("s"), Children: 2}, Entries: []claim.Entry{{Number: 1, Text: []byte("x")}}},
		Children: []queue.Task{{ID: agent + ".1", Kind: "a", Timeout: time.Minute},
			{ID: agent + ".2", Kind: "p", Promise: true, Hooks: queue.Hooks{OnCancel: queue.Hook{Kind: "c"}}}}}
}

// waiting returns the id of an agent that is in the wait of pause.
func (l *lossy) waiting() string {
	l.Helper()
	id := l.running(queue.Task{Kind: "agent", AttemptTimeout: time.Hour})[0]
	if answer, err := claim.Of(l.Q).Suspend(l.Context(), pause(id)); answer != nil || err != nil {
		l.Fatal(answer, err)
	}
	return id
}

// lossesOfAgents are about waits, journals and signals.
var lossesOfAgents = []loss{
	{"an agent begins to wait once", "suspend", func(l *lossy) any {
		return answer(claim.Of(l.caller).Suspend(l.Context(), pause(l.running(queue.Task{Kind: "agent", AttemptTimeout: time.Hour})[0])))
	}},
	{"a wait that is over when it is registered cancels its losers once", "suspend", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "agent"})[0]
		s := pause(id)
		if _, err := l.Q.EnqueueAll(l.Context(), s.Children); err != nil {
			return err
		}
		if _, err := l.Q.Cancel(l.Context(), id+".1", "enough"); err != nil {
			return err
		}
		return answer(claim.Of(l.caller).Suspend(l.Context(), s))
	}},
	{"a wait that is refused changes nothing", "suspend", func(l *lossy) any {
		s := pause(l.running(queue.Task{Kind: "agent"})[0])
		s.Wait.Members = append(s.Wait.Members, claim.Member{ID: "0-stranger.1"})
		return answer(claim.Of(l.caller).Suspend(l.Context(), s))
	}},
	{"an agent remembers once", "remember", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "agent"})[0]
		n := claim.Note{Entries: []claim.Entry{{Number: 1, Text: []byte("x")}}}
		if err := claim.Of(l.Q).Remember(l.Context(), id, 1, "w", n); err != nil {
			return err
		}
		n.Checkpoint = &queue.Checkpoint{State: []byte("s"), Entries: 1}
		n.Entries[0].Number = 2
		return answer(nil, claim.Of(l.caller).Remember(l.Context(), id, 1, "w", n))
	}},
	{"a signal is delivered once", "signal", func(l *lossy) any {
		return answer(l.caller.Signal(l.Context(), l.running(queue.Task{Kind: "agent"})[0], "go", []byte("x")))
	}},
	{"a second signal of the same name gets the reply that one exists", "signal", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "agent"})[0]
		if _, err := l.Q.Signal(l.Context(), id, "go", []byte("first")); err != nil {
			return err
		}
		return answer(l.caller.Signal(l.Context(), id, "go", []byte("second")))
	}},
	{"a member that settles wakes its agent once", "resolve", func(l *lossy) any {
		id := l.waiting()
		return answer(l.caller.Resolve(l.Context(), id+".2", []byte("x")))
	}},
	{"a report wakes an agent once, and fetches it", "settle", func(l *lossy) any {
		id := l.waiting()
		l.fetch("w", 2, 1, time.Minute)
		return l.settle(ask(3, 1, time.Minute), queue.Outcome{ID: id + ".1", Verb: queue.Complete, Result: []byte("r")})
	}},
	{"a woken agent is claimed once", "fetch", func(l *lossy) any {
		if _, err := l.Q.Resolve(l.Context(), l.waiting()+".2", []byte("x")); err != nil {
			return err
		}
		return answer(claim.Of(l.caller).Fetch(l.Context(), 0, "w", ask(2, 3, time.Minute)))
	}},
	{"a waiting agent is cancelled once", "cancel", func(l *lossy) any {
		return answer(l.caller.CancelAll(l.Context(), []string{l.waiting()}, "enough"))
	}},
	{"a wait times out once", "sweep", func(l *lossy) any {
		id := l.waiting()
		for _, d := range []time.Duration{3, 6, 11, 12} {
			l.at(d * time.Second)
			if _, err := reaper.Sweep(l.Context(), l.caller, 0, "r", 100, 500*time.Millisecond); err != nil {
				return err
			}
		}
		// The agent was woken. Its end leaves nothing to do for a late sweep.
		if _, err := l.Q.Cancel(l.Context(), id, "enough"); err != nil {
			return err
		}
		for range 2 {
			if _, err := reaper.Sweep(l.Context(), l.caller, 0, "r", 100, 500*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}},
}
