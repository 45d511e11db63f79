package inspect

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// explain makes an Explanation from the reply.
func (o *observed) explain() *Explanation {
	r := o.record
	e := &Explanation{
		ID: o.id, Kind: r["kind"], Queue: r["queue"], Status: queue.Status(r["status"]), Now: utc(o.now),
		Retries: int(ms(r, "retries")), MaxRetries: int(ms(r, "max_retries")), LastError: r["last_error"], LeaseLosses: ms(r, "lease_losses"), ReleaseReason: r["release_reason"],
	}
	switch {
	case e.Status.Ended():
		o.explainEnd(e)
		return e
	case o.unfit():
		o.explainBroken(e)
		return e
	}
	switch e.Status {
	case queue.Pending:
		o.explainPending(e)
	case queue.Running:
		o.explainRunning(e)
	case queue.Waiting:
		o.explainWaiting(e)
	}
	e.EndsBy = o.endsBy()
	o.explainDecided(e)
	o.explainLost(e)
	e.Lag = o.lag(e.Bound.Kind)
	if turn := ms(o.facts, "turn_until"); turn < o.now {
		e.warn(WarnNoReaper, "no reaper runs in partition "+o.partition()+", so a due task waits for the next call that touches it: run a reaper")
	}
	if e.Bound.Kind == BoundNone {
		e.warnNoBound(o.unbounded())
	}
	return e
}

func (o *observed) partition() string {
	p, _ := queue.PartitionOf(o.id) // no error is possible, because Explain has checked the id
	return fmt.Sprint(p)
}

// unfit reports whether the record is so broken that no script can change the task.
func (o *observed) unfit() bool {
	status := queue.Status(o.record["status"])
	return o.facts["unreadable"] != "" || o.facts["broken"] != "" || status != queue.Pending && status != queue.Running && status != queue.Waiting
}

func (o *observed) explainBroken(e *Explanation) {
	e.Why, e.Bound, e.EndsBy = WhyBroken, Bound{Kind: BoundNone}, Bound{Kind: BoundNone}
	reason := o.facts["unreadable"]
	switch {
	case reason != "":
	case o.facts["broken"] != "":
		reason = "its id is in the namespace's key broken"
	default:
		reason = "its status is not valid"
	}
	if at := ms(o.facts, "broken"); at > 0 {
		e.Since = utc(at)
	}
	e.warn(WarnBroken, "its record cannot be worked with ("+reason+"), and no clock bounds it any more: repair or remove it", o.id)
	e.warnNoBound(nil)
}

// bound returns a bound at an instant. Left is 0 if the instant is past.
func (o *observed) bound(kind BoundKind, at int64, task string) Bound {
	return Bound{Kind: kind, At: utc(at), Left: lasting(max(at-o.now, 0)), Task: task}
}

// lasting converts ms to a Duration. The sum of two durations can be too long for a Duration; then
// lasting returns the longest one.
func lasting(span int64) duration.Duration {
	return duration.Duration(min(span, math.MaxInt64/int64(time.Millisecond))) * duration.Duration(time.Millisecond)
}

// sooner returns the earlier of two bounds, or a if they are equal.
func sooner(a, b Bound) Bound {
	if b.Kind == BoundNone || a.Kind != BoundNone && !b.At.Before(a.At) {
		return a
	}
	return b
}

// final returns the deadline in a record: the task's own, or the deadline of an owner, which enqueue
// stores as until. If both are equal, the owner's counts.
func (o *observed) final(fields map[string]string, id string) Bound {
	until, deadline := ms(fields, "until"), ms(fields, "deadline_at")
	switch {
	case until > 0:
		by := fields["until_of"]
		if by == "" {
			by = names.OwnerOf(id)
		}
		return o.bound(BoundOwner, until, by)
	case deadline > 0:
		return o.bound(BoundDeadline, deadline, id)
	}
	return Bound{Kind: BoundNone}
}

// endsBy returns the latest instant at which a live task ends.
func (o *observed) endsBy() Bound {
	b := o.final(o.record, o.id)
	if at := ms(o.record, "grace_at"); at > 0 {
		b = sooner(b, o.bound(BoundGrace, at, o.id))
	}
	return o.sooner(b, o.record, o.id)
}

// sooner returns the instant of a timer, unless its bound is before it: a timer that is due at its deadline fires.
func (o *observed) sooner(b Bound, fields map[string]string, id string) Bound {
	if at := ms(fields, "available_at"); at > 0 && fields["role"] == "timer" {
		return sooner(o.bound(BoundTimer, at, id), b)
	}
	return b
}

// limited returns endsBy or the running limit, whichever is earlier.
func (o *observed) limited(kind BoundKind) Bound {
	b := o.endsBy()
	if at := ms(o.record, "limit_at"); at > 0 {
		b = sooner(b, o.bound(kind, at, o.id))
	}
	return b
}

func (o *observed) explainPending(e *Explanation) {
	r := o.record
	start := ms(r, "available_at")
	e.GivenBack = o.givenBack()
	switch {
	case r["role"] == "timer":
		e.Why, e.Bound = WhyTimer, o.endsBy()
	case r["role"] != "":
		e.Why, e.Bound, e.ResultType = WhyPromise, o.endsBy(), r["result_type"]
	case start > 0:
		e.Why, e.Bound = WhyDelayed, sooner(o.endsBy(), o.bound(BoundStart, start, o.id))
		switch { // the next claim removes the reason of a release (lua/task/claim.lua)
		case e.ReleaseReason != "", e.Retries == 0 && r["requeued_by"] != "":
			e.Why = WhyGivenBack
		case e.Retries > 0:
			e.Why = WhyBackingOff
		}
	case r["held"] != "":
		e.Why, e.Bound, e.Since = WhyHeld, o.limited(BoundQueue), utc(ms(r, "held_at"))
		e.Held = queue.HeldReason(r["held"])
		e.HeldBy = r["held_by"]
	case r["lease_losses"] != "":
		e.Why, e.Bound, e.Since = WhyHeld, o.limited(BoundQueue), utc(ms(r, "ready_at"))
		e.Held = queue.HeldSuspect
		o.explainHold(e, o.line())
	case r["woken"] != "":
		e.Why, e.Bound = WhyWoken, o.limited(BoundQueue)
		if r["limit_at"] == r["attempt_at"] {
			e.Bound = o.limited(BoundAttempt)
		}
		o.explainLine(e)
	default:
		e.Why, e.Bound = WhyInLine, o.limited(BoundQueue)
		o.explainLine(e)
	}
	if isDiverged(e.ReleaseReason) {
		e.warn(WarnDiverged, "the code of the agent has changed, and the program of its last worker cannot continue it: run a program with code that fits, or cancel the agent")
	}
	o.explainWorkers(e)
}

// explainWorkers warns if no live worker can run the task.
func (o *observed) explainWorkers(e *Explanation) {
	if o.record["role"] == "" && o.facts["workers"] == "0" {
		e.warn(WarnNoWorker, "no worker lives in partition "+o.partition()+": run one that serves the queue "+e.Queue)
	} else if o.wantsWorker() {
		o.explainCrew(e)
	}
}

// givenBack returns the number of times that a PENDING task was claimed without a result and without
// a lost lease. It is 0 for an agent that has waited, because its claims include those after each
// wait.
func (o *observed) givenBack() int64 {
	r := o.record
	if r["epoch"] == "" || r["suspended_by"] != "" || r["woken"] != "" {
		return 0
	}
	claims := ms(r, "epoch")
	if idOfName.MatchString(o.id) { // its epochs start at a number like created_at: lua/task/identity.lua
		claims -= max(ms(r, "number"), ms(r, "created_at")) - 1
	}
	return max(claims-ms(r, "retries")-ms(r, "lease_losses"), 0)
}

// idOfName matches the ids of tasks with a name, and of their children and hooks.
var idOfName = regexp.MustCompile(`^\d+-[ne]-`)

func (o *observed) explainRunning(e *Explanation) {
	r := o.record
	e.Why, e.Bound, e.Since = WhyRunning, o.limited(BoundAttempt), utc(ms(r, "started_at"))
	e.Run = &ExplainedRun{Worker: r["worker"], Attempt: e.Retries + 1, Epoch: ms(r, "epoch"), LeaseEnds: utc(ms(o.facts, "lease"))}
	if at := ms(r, "cancel_at"); at > 0 {
		e.Why, e.Since = WhyCancelling, utc(at)
		e.Run.CancelledAt, e.Run.CancelReason = e.Since, r["cancel_reason"]
	}
	if o.lacks("claims") || o.lacks("lease") {
		return // explainLost warns of that
	}
	if ms(o.facts, "lease") < o.now {
		effect := "the task is given back"
		if e.Why == WhyCancelling {
			effect = "the task is CANCELLED"
		}
		e.warn(WarnLeaseOver, fmt.Sprintf("the lease of its worker %s is over: unless the worker sends a heartbeat, %s by the next sweep", r["worker"], effect))
	}
}

// explainDecided replaces Why and Bound if the end of the task or attempt is decided but not written
// yet.
func (o *observed) explainDecided(e *Explanation) {
	if at := ms(o.over, "completed_at"); at > 0 {
		e.Why, e.End = WhyOverdue, &ExplainedEnd{Status: queue.Status(o.over["status"]), At: utc(at),
			Reason: queue.Reason(o.over["reason"]), TimeoutType: queue.TimeoutType(o.over["timeout_type"]), Error: o.over["error"]}
		by := o.id
		switch {
		case ms(o.facts, "doomed_at") == at:
			e.Why, by = WhyDoomed, o.facts["doomed_by"]
			e.End.By = by
		case e.End.TimeoutType == "workflow":
			if by = cmp.Or(o.final(o.record, o.id).Task, names.OwnerOf(o.id)); by != o.id { // otherwise the task is the run of a flow, whose own deadline has this type too
				e.End.By = by
			}
		}
		e.Bound = o.bound(BoundDecided, at, by)
		e.EndsBy = e.Bound
		return
	}
	if at := ms(o.facts, "attempt_over"); at > 0 {
		e.Why, e.Bound = WhyAttemptOver, o.bound(BoundDecided, at, o.id)
	}
}

// ownTime reports whether the task's own deadline ended it. It does not use the type of the timeout,
// because the own deadline of the run of a flow has the same type as its owner's.
func (o *observed) ownTime() bool {
	return o.record["until"] == "" && o.record["completed_at"] == o.record["deadline_at"]
}

func (o *observed) explainEnd(e *Explanation) {
	r := o.record
	e.Since = utc(ms(r, "completed_at"))
	e.End = &ExplainedEnd{Status: e.Status, At: e.Since, Reason: queue.Reason(r["reason"]), TimeoutType: queue.TimeoutType(r["timeout_type"]), Error: r["error"], Goes: utc(ms(o.facts, "goes"))}
	switch {
	case e.End.Reason == "owner_ended", e.End.TimeoutType == "workflow" && !o.ownTime():
		e.Why = WhyOwnerEnded
		if e.End.TimeoutType == "workflow" && r["until"] == r["completed_at"] {
			e.End.By = o.final(r, o.id).Task // an owner's other limit, or its cancellation, is not on this record
		}
	case r["timed_out"] != "":
		e.Why = WhyTimedOut
	case e.Status == queue.Completed:
		e.Why = WhyCompleted
	case e.Status == queue.Failed:
		e.Why = WhyFailed
	default:
		e.Why = WhyCancelled
	}
	if noticed := utc(ms(r, "detected_at")); !noticed.IsZero() {
		e.End.Lag = duration.Duration(max(noticed.Sub(e.Since), 0))
	}
	if owner := queue.Status(o.facts["owner"]); e.End.Goes.IsZero() && owner != "" && !owner.Ended() {
		e.End.KeptBy = names.OwnerOf(o.id)
	}
	e.Bound, e.EndsBy = Bound{Kind: BoundFinal}, Bound{Kind: BoundFinal}
	e.Held, e.HeldBy = queue.HeldReason(r["held"]), r["held_by"]
	if e.End.NeverStarted = o.neverStarted(); e.End.NeverStarted {
		o.explainHold(e, o.line())
		o.explainWorkers(e)
	}
}

// neverStarted reports whether the task has timed out and was never claimed.
func (o *observed) neverStarted() bool {
	return o.record["timed_out"] != "" && o.record["epoch"] == "" && o.record["role"] == ""
}
