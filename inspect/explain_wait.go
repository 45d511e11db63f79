package inspect

import (
	"math"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/queue"
)

// explainWaiting tells what an agent waits for, and by when that is decided.
func (o *observed) explainWaiting(e *Explanation) {
	e.Why, e.Bound, e.Since = WhyWaiting, o.limited(BoundAttempt), utc(ms(o.wait, "since"))
	if o.wait["state"] == "" {
		e.warn(WarnLost, "it is WAITING and has no wait, so nothing wakes it: see Audit, or cancel it", o.id)
		return
	}
	w := &ExplainedWait{
		Mode: queue.Mode(o.wait["mode"]), Label: o.wait["label"], Because: o.wait["why"], Entry: ms(o.wait, "entry"), Members: int(ms(o.wait, "size")),
		OK: int(ms(o.wait, "ok")), Bad: int(ms(o.wait, "bad")), Settled: int(ms(o.wait, "settled")),
		Limit: utc(ms(o.wait, "wait_deadline_at")),
	}
	for _, name := range strings.Fields(o.wait["members"]) {
		w.Tasks = append(w.Tasks, o.id+"."+name)
	}
	e.Wait = w
	w.Left = w.Members - w.Settled
	w.Need = int(ms(o.wait, "all"))
	if need := int(ms(o.wait, "need_ok")); need > 0 {
		w.Need = need
	}
	all := o.patients()
	over := o.limitBound(all)
	if span := ms(o.wait, "limit_ms"); span > 0 && w.Limit.IsZero() {
		w.LimitAfter = lasting(span)
		if over.Kind == BoundNone {
			e.warn(WarnNotBegun, "the limit of the wait, "+w.LimitAfter.String()+", begins with the first end, which nothing bounds")
		}
	}
	limit := ms(o.wait, "wait_deadline_at")
	switch {
	case o.wait["state"] != "open":
		e.Why, w.Reason = WhyWaking, o.wait["reason"]
		e.Bound = sooner(e.Bound, o.bound(BoundDecided, o.now, o.id))
	case limit > 0 && limit < o.now:
		e.Why, w.Reason = WhyWaking, "timed_out"
		e.Bound = sooner(e.Bound, o.bound(BoundDecided, limit, o.id))
	default:
		// Of equal instants the agent's own end comes first, and then what ends at the
		// limit is counted still.
		e.Bound = sooner(sooner(e.Bound, o.membersBound(all)), over)
	}
	if broken := o.brokenMembers(); len(broken) > 0 {
		e.warn(WarnBroken, "the records of members are missing or cannot be worked with, so that they may never count as ended: cancel the agent, or mend them", broken...)
	}
}

// patient is a member with its bound, and what its end may count as.
type patient struct {
	bound            Bound
	ok, bad, neither bool
}

// patients are the members that have not ended, in the order of their bounds; last are
// those that have none.
func (o *observed) patients() []patient {
	var all []patient
	for i := range o.members {
		m := &o.members[i]
		p := patient{bound: o.memberBound(m)}
		p.ok, p.bad, p.neither = strings.Contains(m.mask, "o"), strings.Contains(m.mask, "b"), strings.Contains(m.mask, "n")
		all = append(all, p)
	}
	for range o.gone {
		all = append(all, patient{bound: o.bound(BoundDecided, o.goneBy, o.id), neither: true})
	}
	slices.SortStableFunc(all, func(a, b patient) int {
		switch {
		case a.bound.Kind == BoundNone && b.bound.Kind == BoundNone:
			return 0
		case a.bound.Kind == BoundNone:
			return 1
		case b.bound.Kind == BoundNone:
			return -1
		}
		return a.bound.At.Compare(b.bound.At)
	})
	return all
}

// limitBound is by when at the latest the wait is out of time. A limit that is to begin
// with the first end begins no later than where the earliest bound of a member is: the
// first end can only come sooner, whichever member's that is.
func (o *observed) limitBound(all []patient) Bound {
	if limit := ms(o.wait, "wait_deadline_at"); limit > 0 {
		return o.bound(BoundWait, limit, o.id)
	}
	span := ms(o.wait, "limit_ms")
	if span == 0 || len(all) == 0 || all[0].bound.Kind == BoundNone {
		return Bound{Kind: BoundNone}
	}
	first := all[0].bound
	return o.bound(BoundWait, first.At.UnixMilli()+span, first.Task)
}

// membersBound is the instant by which a wait is decided by its members, however each of
// them ends, at the first moment or the last. It is found by putting the latest off: they
// end in the order of their bounds, each in the way that decides least.
func (o *observed) membersBound(all []patient) Bound {
	c := o.counters()
	for _, p := range all {
		if p.bound.Kind == BoundNone {
			break
		}
		if c.ends(p); c.decided() {
			return p.bound
		}
	}
	return Bound{Kind: BoundNone}
}

// counters is how far a wait is: how many ends that are ok, bad, or ends at all it lacks;
// and how many of those that come may still be either.
type counters struct{ ok, bad, all, either int }

func (o *observed) counters() counters {
	c := counters{ok: math.MaxInt32, bad: math.MaxInt32, all: int(ms(o.wait, "all") - ms(o.wait, "settled"))}
	if n := ms(o.wait, "need_ok"); n > 0 {
		c.ok = int(n - ms(o.wait, "ok"))
	}
	if n := ms(o.wait, "most_bad"); n > 0 {
		c.bad = int(n - ms(o.wait, "bad"))
	}
	return c
}

// ends counts a member's end as what decides least.
func (c *counters) ends(p patient) {
	c.all--
	switch {
	case p.neither:
	case p.ok && p.bad:
		c.either++
	case p.ok:
		c.ok--
	case p.bad:
		c.bad--
	}
}

// decided tells whether no split of what may be either leaves the wait open.
func (c *counters) decided() bool {
	return c.all <= 0 || c.ok <= 0 || c.bad <= 0 || c.either > c.ok-1+c.bad-1
}

// memberBound is by when at the latest a member has ended, or the wait has no more
// patience with it. A running one that is cancelled for that has its grace, which begins
// with the sweep in the next ms.
func (o *observed) memberBound(m *member) Bound {
	f := m.fields
	if m.unfit() {
		return Bound{Kind: BoundNone}
	}
	if at := ms(f, "over_at"); at > 0 {
		return o.bound(BoundDecided, at, m.id)
	}
	b := Bound{Kind: BoundNone}
	if until, own := ms(f, "until"), ms(f, "deadline_at"); until > 0 {
		b = o.bound(BoundOwner, until, m.id)
	} else if own > 0 {
		b = o.bound(BoundDeadline, own, m.id)
	}
	if at := ms(f, "available_at"); at > 0 && f["role"] == "timer" {
		b = sooner(b, o.bound(BoundTimer, at, m.id))
	}
	if at := ms(f, "grace_at"); at > 0 {
		b = sooner(b, o.bound(BoundGrace, at, m.id))
	}
	if at := ms(f, "patience"); at > 0 {
		if grace := ms(f, "cancel_grace_ms"); grace > 0 {
			at = max(at, o.now-1) + 1 + grace
		}
		b = sooner(b, o.bound(BoundPatience, at, m.id))
	}
	return b
}

// unfit tells whether nothing may ever end a member for this wait: its record is gone
// or cannot be worked with, or it ended and was not counted.
func (m *member) unfit() bool {
	status := queue.Status(m.fields["status"])
	return m.fields["broken"] != "" || status != queue.Pending && status != queue.Running && status != queue.Waiting
}

func (o *observed) brokenMembers() []string {
	var ids []string
	for i := range o.members {
		if m := &o.members[i]; m.unfit() && !queue.Status(m.fields["status"]).Ended() {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// unbounded are those members that nothing bounds.
func (o *observed) unbounded() []string {
	var ids []string
	for i := range o.members {
		if m := &o.members[i]; o.memberBound(m).Kind == BoundNone {
			ids = append(ids, m.id)
		}
	}
	return ids
}
