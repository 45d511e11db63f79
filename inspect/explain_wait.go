package inspect

import (
	"math"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/queue"
)

// explainWaiting describes the wait of an agent, and computes the instant by which it is decided.
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
	if e.Wait = w; o.collects() {
		w.Members = int(ms(o.wait, "pending"))
	}
	w.Left = w.Members - w.Settled
	w.Need = int(ms(o.wait, "all"))
	if need := int(ms(o.wait, "need_ok")); need > 0 {
		w.Need = need
	}
	patients := o.patients()
	limitBound := o.limitBound(patients)
	if span := ms(o.wait, "limit_ms"); span > 0 && w.Limit.IsZero() {
		w.LimitAfter = lasting(span)
		if limitBound.Kind == BoundNone {
			e.warn(WarnNotBegun, "the limit of the wait, "+w.LimitAfter.String()+", begins when the first member ends, and no member has a bound")
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
		// If instants are equal, the agent's own end decides. Otherwise a member that ends exactly
		// at the limit still counts.
		e.Bound = sooner(sooner(e.Bound, o.membersBound(patients)), limitBound)
	}
	if broken := o.brokenMembers(); len(broken) > 0 {
		e.warn(WarnBroken, "the records of members are missing or cannot be worked with, so they may never count as ended: cancel the agent, or repair them", broken...)
	}
}

// patient is a member with its bound, and the votes that its end can count as.
type patient struct {
	bound            Bound
	ok, bad, neither bool
}

// patients returns the members that have not ended, in the order of their bounds. Members without a
// bound come last.
func (o *observed) patients() []patient {
	var list []patient
	for i := range o.members {
		m := &o.members[i]
		p := patient{bound: o.memberBound(m)}
		p.ok, p.bad, p.neither = strings.Contains(m.mask, "o"), strings.Contains(m.mask, "b"), strings.Contains(m.mask, "n")
		list = append(list, p)
	}
	for range o.gone {
		list = append(list, patient{bound: o.bound(BoundDecided, o.goneBy, o.id), neither: true})
	}
	slices.SortStableFunc(list, func(a, b patient) int {
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
	return list
}

// limitBound returns the latest instant at which the wait reaches its limit. A limit that starts
// with the first end starts no later than at the earliest bound of a member, because the first end
// cannot come later.
func (o *observed) limitBound(patients []patient) Bound {
	if limit := ms(o.wait, "wait_deadline_at"); limit > 0 {
		return o.bound(BoundWait, limit, o.id)
	}
	span := ms(o.wait, "limit_ms")
	if span == 0 || len(patients) == 0 || patients[0].bound.Kind == BoundNone {
		return Bound{Kind: BoundNone}
	}
	first := patients[0].bound
	return o.bound(BoundWait, first.At.UnixMilli()+span, first.Task)
}

// membersBound returns the instant by which the members decide the wait, however and whenever each
// of them ends. It is the instant of the decision if every member ends at its bound, with the
// outcome that contributes least to a decision.
func (o *observed) membersBound(patients []patient) Bound {
	c := o.counters()
	for _, p := range patients {
		if p.bound.Kind == BoundNone {
			break
		}
		if c.count(p); c.decided() {
			return p.bound
		}
	}
	return Bound{Kind: BoundNone}
}

// counters holds the numbers of ok ends, bad ends, and ends of any kind that are missing until the
// wait is decided. either is the number of counted ends that can be ok or bad.
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

// count counts the end of a member, with the outcome that contributes least to a decision.
func (c *counters) count(p patient) {
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

// decided reports whether the wait is decided, however the ends in either are divided into ok and
// bad.
func (c *counters) decided() bool {
	return c.all <= 0 || c.ok <= 0 || c.bad <= 0 || c.either > c.ok-1+c.bad-1
}

// memberBound returns the latest instant at which a member ends, or at which the wait's patience
// with it is over. A running member that is cancelled then has its grace, which begins with the
// sweep in the next ms.
func (o *observed) memberBound(m *member) Bound {
	f := m.fields
	if m.unfit() {
		return Bound{Kind: BoundNone}
	}
	if at := ms(f, "over_at"); at > 0 {
		return o.bound(BoundDecided, at, m.id)
	}
	b := Bound{Kind: BoundNone}
	if until, deadline := ms(f, "until"), ms(f, "deadline_at"); until > 0 {
		b = o.bound(BoundOwner, until, m.id)
	} else if deadline > 0 {
		b = o.bound(BoundDeadline, deadline, m.id)
	}
	b = o.sooner(b, f, m.id)
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

// unfit reports whether a member may never count as ended for this wait, because its record is
// missing or cannot be worked with, or because it ended and was not counted.
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

// unbounded returns the members that have no bound.
func (o *observed) unbounded() []string {
	var ids []string
	for i := range o.members {
		if m := &o.members[i]; o.memberBound(m).Kind == BoundNone {
			ids = append(ids, m.id)
		}
	}
	return ids
}
