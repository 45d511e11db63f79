package races

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// resume ends a round. If the agent has waited, two workers fetch, and exactly one of them gets the
// agent. Then resume checks the journal against the members' records, completes the agent, and
// returns the outcome of the wait. answer is the outcome that Suspend returned, or nil if the agent
// has waited.
func (b *bout) resume(answer *queue.WaitOutcome) (o queue.WaitOutcome) {
	worker, claim := b.worker, b.agent
	if answer == nil {
		found := make([][]queue.Claim, 2)
		names := []string{b.name + "-worker", b.name + "-other"}
		b.meet(func() { found[0] = b.take(2, names[0], b.agents(), 10, time.Minute) },
			func() { found[1] = b.take(3, names[1], b.agents(), 10, time.Minute) })
		if n := len(found[0]) + len(found[1]); n != 1 {
			b.Errorf("%s: %d workers got the agent after its wait, want 1; the agent is %s", b.agent.ID, n, b.state())
			return o
		}
		worker, claim = names[0], append(found[0], found[1]...)[0]
		if len(found[1]) == 1 {
			worker = names[1]
		}
		if claim.ID != b.agent.ID || claim.Epoch != b.agent.Epoch+1 || !claim.Journal {
			b.Errorf("the claim after the wait is %+v, want %s with epoch %d and a journal", claim, b.agent.ID, b.agent.Epoch+1)
		}
	}
	o = b.verdict(answer)
	if !b.report(0, worker, queue.Outcome{ID: claim.ID, Epoch: claim.Epoch, Verb: queue.Complete}) {
		b.Errorf("the report of the agent %s after its wait was refused", claim.ID)
	}
	return o
}

func (b *bout) state() queue.Status {
	r, err := b.hands[0].Get(b.Context(), b.agent.ID)
	if !b.must(err) {
		return ""
	}
	return r.Status
}

// verdict reads the outcome of the wait from the journal, and checks it.
func (b *bout) verdict(answer *queue.WaitOutcome) (o queue.WaitOutcome) {
	m, err := claim.Of(b.hands[1]).Recall(b.Context(), b.agent.ID)
	if !b.must(err) {
		return o
	}
	o, ok := queue.ReadWaitOutcome(m.Journal[1])
	if !ok || len(m.Journal) != 1 {
		b.Errorf("the journal of %s is %v, want one outcome of its wait", b.agent.ID, m.Journal)
		return o
	}
	if answer != nil && !reflect.DeepEqual(*answer, o) {
		b.Errorf("Suspend returned %+v, but the journal has %+v", *answer, o)
	}
	records, err := claim.Of(b.hands[1]).Children(b.Context(), b.agent.ID, b.names)
	if b.must(err) {
		b.consistent(o, records)
	}
	return o
}

// consistent checks an outcome against the members' records.
func (b *bout) consistent(o queue.WaitOutcome, records map[string]*queue.Record) {
	complain := func(format string, args ...any) {
		b.Helper()
		b.Errorf("wait %s of %d, %+v: "+format, append([]any{b.wait.Mode, b.wait.Need, o}, args...)...)
		for _, name := range b.names {
			b.Logf("%s: %s %s, ended %d", name, records[name].Status, records[name].Reason, records[name].CompletedAt.UnixMilli())
		}
	}
	if !slices.Equal(o.Members, b.names) {
		complain("want the members %q", b.names)
		return
	}
	var last time.Time
	for _, name := range o.Settled {
		r := records[name]
		switch {
		case !r.Status.Ended():
			complain("%s counts, but has not ended", name)
		case r.CompletedAt.After(o.At):
			complain("%s counts, but ended after the wait", name)
		case r.CompletedAt.Before(last):
			complain("%s ended before the member that is listed before it", name)
		}
		last = r.CompletedAt
	}
	for _, name := range b.names {
		if r := records[name]; !slices.Contains(o.Settled, name) {
			b.unsettled(o, r, last, complain)
		}
	}
	if n := len(o.Settled); o.Winner != "" && (n == 0 || o.Settled[n-1] != o.Winner) {
		complain("the last settled member is not the winner")
	}
	reason, winner := b.decided(o, records)
	if o.Reason != reason || o.Winner != winner {
		complain("the records give the reason %q and the winner %q", reason, winner)
	}
}

// unsettled checks a member that does not count: it must have ended after the winner, or after the
// limit, or not at all.
func (b *bout) unsettled(o queue.WaitOutcome, r *queue.Record, decisive time.Time, complain func(string, ...any)) {
	timedOut := o.Reason == "timed_out"
	dropped := timedOut && !b.wait.KeepPending || !timedOut && b.wait.CancelLosers
	switch {
	case r.Status.Ended() && (r.CompletedAt.Before(decisive) || timedOut && !r.CompletedAt.After(o.At)):
		complain("%s had ended, but does not count", r.ID)
	case dropped && !r.Status.Ended():
		complain("%s has not ended, want it cancelled", r.ID)
	case !dropped && (r.Reason == "not_needed" || r.Reason == "wait_timeout"):
		complain("%s was cancelled, want it kept", r.ID)
	}
}

// decided returns the reason and the winner of a wait, from the members in the order in which they
// settled. It implements the documented modes independently of the Lua.
func (b *bout) decided(o queue.WaitOutcome, records map[string]*queue.Record) (reason, winner string) {
	n, ok, bad := len(b.names), 0, 0
	for i, name := range o.Settled {
		if records[name].Status == queue.Completed {
			ok++
		} else {
			bad++
		}
		switch last := i == n-1; b.wait.Mode {
		case queue.WaitAll, queue.WaitSettled:
			if last {
				return "satisfied", name
			}
			if bad > 0 && b.wait.Mode == queue.WaitAll && i == len(o.Settled)-1 && o.Reason == "impossible" {
				return "impossible", name // the member had failed before the wait began
			}
		case queue.WaitFailFast:
			if bad == 1 {
				return "impossible", name
			} else if last {
				return "satisfied", name
			}
		case queue.WaitAny:
			return "satisfied", name
		case queue.WaitAnyOK, queue.WaitNOfM:
			need := max(b.wait.Need, 1)
			if ok == need {
				return "satisfied", name
			} else if n-bad < need {
				return "impossible", name
			}
		case queue.WaitNSettled:
			if i+1 == b.wait.Need {
				return "satisfied", name
			}
		}
	}
	return "timed_out", ""
}

// checkLives checks that each event of a task is possible after the event before it. An agent wakes once
// from each wait, and never from another wait.
func (s *stage) checkLives() {
	s.Helper()
	events := s.Events(s.Q)
	status, entry, limit, woken := map[string]queue.Status{}, map[string]any{}, map[string]int64{}, map[string]int64{}
	for _, e := range events {
		was := status[e.ID]
		is, fits := queue.Status(""), false
		switch e.Kind {
		case "task_enqueued":
			is, fits = queue.Pending, was == ""
		case "task_started":
			is, fits = queue.Running, was == queue.Pending
		case "task_suspended":
			is, fits = queue.Waiting, was == queue.Running
			entry[e.ID] = e.Fields["entry"]
			limit[e.ID], _ = strconv.ParseInt(fmt.Sprint(e.Fields["wait_deadline_at"]), 10, 64)
		case "wait_timed_out":
			is, fits = queue.Waiting, was == queue.Waiting
		case "task_resumed":
			is, fits = queue.Pending, was == queue.Waiting && e.Fields["entry"] == entry[e.ID]
			woken[e.ID] = e.At
			if in := limit[e.ID]; in > 0 && e.At > in && e.Fields["reason"] != "timed_out" {
				s.Complain("%s was woken %d ms after the limit of its wait, but not with the reason timed_out", e.ID, e.At-in)
			}
		case "task_lease_lost", "task_released":
			is, fits = queue.Pending, was == queue.Running
		case "task_retried", "attempt_timed_out":
			is, fits = queue.Pending, was != "" && !was.Ended()
		case "rejected", "task_cancelling", "deadline_near":
			continue
		case "task_completed":
			// A promise or a timer completes while it is PENDING.
			is, fits = queue.Completed, was == queue.Running || was == queue.Pending
		default:
			is, fits = queue.Failed, was != "" && !was.Ended()
		}
		if e.Kind == "task_timed_out" && e.Deadline > 0 && woken[e.ID] > e.Deadline {
			s.Complain("%s was woken %d ms after its deadline", e.ID, woken[e.ID]-e.Deadline)
		}
		if !fits || !e.Terminal() && is == queue.Failed {
			s.Complain("%s was %q, and its next event is %s %v", e.ID, was, e.Kind, e.Fields["entry"])
		}
		status[e.ID] = is
	}
}
