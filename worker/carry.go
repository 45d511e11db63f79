package worker

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

const (
	maxList     = 500     // outcomes a trip
	maxCall     = 4 << 20 // bytes a trip
	maxCarriers = 2       // trips at once in a partition, so that Redis and handlers overlap
	maxTries    = 3       // of a trip that Redis refuses because of what is in it
	unknownRest = time.Second

	// slotsFor is how long a trip to a partition that hangs keeps the slots that it asked
	// for: it must not hold up the others.
	slotsFor = 1500 * time.Millisecond
)

// load is what travels to Redis in one trip: outcomes, and an ask for tasks.
type load struct {
	attempts []*attempt
	outcomes []queue.Outcome
	ask      queue.Ask
	slots    int // reserved for what the ask brings; guarded by the lane
}

// kick sets a trip going if one is due, and tells whether it did. Caller holds mu.
//
// A carrier lives only while there is something to carry: an idle lane has none.
func (l *lane) kick() bool {
	if l.closed || l.carriers == maxCarriers || !l.due(l.carriers) {
		return false
	}
	l.carriers++
	l.w.errands.Go(l.carry)
	return true
}

// due tells whether a trip should start while others are under way. Outcomes gather
// while one is; a second one starts once a good part of the slots has finished, so
// that Redis is not left idle until the first is back. There is no timer.
func (l *lane) due(others int) bool {
	if others > 0 {
		return len(l.ended) >= max(l.w.config.Concurrency/4, 1)
	}
	return len(l.ended) > 0 || l.hungry && !l.starved || l.token
}

// carry makes trips as long as they are due.
func (l *lane) carry() {
	defer l.w.signal()
	for {
		// Handlers that are ready to finish do so now, and their outcomes come along.
		runtime.Gosched()
		load, ok := l.depart()
		if !ok {
			return
		}
		trip, err := l.travel(load)
		if err != nil {
			l.w.rest(l.missed(load, err))
			continue
		}
		l.arrived(load, trip)
	}
}

// depart decides what travels. If it is nothing the carrier is no longer one.
func (l *lane) depart() (*load, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.due(l.carriers-1) || l.closed {
		l.carriers--
		return nil, false
	}
	out := new(load)
	if l.hungry && !l.starved {
		out.slots = l.w.slots.acquire(&l.account, maxList)
		out.ask.N = out.slots
		l.starved = out.slots == 0
	}
	l.board(out)
	// A token without a slot goes back: an ask for nothing passes it on.
	baton := l.token && out.ask.N == 0 && len(out.attempts) == 0
	if out.ask.N > 0 || baton {
		l.token = false
		l.seq++
		l.open(l.seq)
		out.ask.Seq, out.ask.Lease = l.seq, l.w.config.Lease
		out.ask.Quotas = l.w.menu.draw(out.ask.N)
	} else if len(out.attempts) == 0 {
		l.carriers--
		return nil, false
	}
	return out, true
}

// board takes as many outcomes as a trip carries. Caller holds mu.
func (l *lane) board(out *load) {
	n, size := 0, 0
	for n < len(l.ended) && n < maxList {
		o := &l.ended[n].outcome
		size += 100 + len(o.ID) + len(o.Result) + len(o.Error)
		if n > 0 && size > maxCall {
			break
		}
		n++
		if l.careful > 0 {
			l.careful--
			break
		}
	}
	if n == 0 {
		return
	}
	out.attempts = l.ended[:n:n]
	l.ended = l.ended[n:]
	if len(l.ended) == 0 {
		l.ended = nil
	}
	out.outcomes = make([]queue.Outcome, n)
	for i, a := range out.attempts {
		out.outcomes[i] = a.outcome
	}
}

// travel makes a trip. One that only asks ends with the wish for work, even while
// Redis is away: what it was given unheard, the goodbye gives back.
func (l *lane) travel(out *load) (queue.Trip, error) {
	w := l.w
	if out.ask.N > 0 && len(w.lanes) > 1 {
		defer l.mind(out)()
	}
	switch {
	case len(out.outcomes) > 0:
		return w.q.Settle(w.errand, l.partition, w.id, queue.NewCall(), out.outcomes, out.ask)
	case out.ask.N > 0:
		return w.q.Fetch(w.wanting, l.partition, w.id, out.ask)
	}
	return w.q.Fetch(w.errand, l.partition, w.id, out.ask)
}

// mind has the slots of a trip taken back if its partition hangs, until the function
// returned is called. A trip may also be long because what it carries is large: as long as
// the partition answers something small, the trip keeps its slots. What came after they
// were taken might have to be given back, and would be sent again.
func (l *lane) mind(out *load) (end func()) {
	ctx, cancel := context.WithCancel(l.w.errand)
	var look func()
	look = func() {
		try, endTry := context.WithTimeout(ctx, slotsFor/2)
		defer endTry()
		err := l.w.q.Answers(try, l.partition)
		switch {
		case ctx.Err() != nil: // the trip is back
		case err == nil:
			time.AfterFunc(slotsFor/2, look)
		default:
			l.reclaim(out)
		}
	}
	first := time.AfterFunc(slotsFor/2, look)
	return func() {
		cancel()
		first.Stop()
	}
}

// reclaim takes the slots of a trip that hangs, for the other lanes. What it brings
// after all runs if there are slots then, and is given back otherwise.
func (l *lane) reclaim(out *load) {
	var woken []*account
	l.mu.Lock()
	if out.slots > 0 { // else it has just come back
		woken = l.satisfied(out.slots)
		out.slots = 0
	}
	l.mu.Unlock()
	wakeAll(woken)
}

// arrived takes the verdicts and starts what was handed out.
func (l *lane) arrived(out *load, trip queue.Trip) {
	received := time.Now()
	l.mu.Lock()
	for i, a := range out.attempts {
		delete(l.held, a.held())
		l.count(a, trip.Verdicts[i])
	}
	l.settle(out.ask.Seq)
	l.pause = 0
	started := l.begin(out, trip.Claims, received)
	var woken []*account
	switch unused := out.slots - len(started); {
	case out.ask.N == 0:
	case l.sated(out.ask, len(trip.Claims), trip.More):
		woken = l.satisfied(unused)
	default:
		woken = l.w.slots.fetched(&l.account, unused, true)
	}
	out.slots = 0
	l.mu.Unlock()
	wakeAll(woken)
	for _, a := range started {
		go a.run()
	}
	l.w.reportKeys(l.partition, trip.Errors)
}

// begin registers what was handed out, and returns what is to run. Caller holds mu.
func (l *lane) begin(out *load, claims []queue.Claim, received time.Time) (started []*attempt) {
	w := l.w
	if out.slots < len(claims) { // they were reclaimed: see what is free now
		out.slots += w.slots.acquireFree(&l.account, len(claims)-out.slots)
	}
	for i := range claims {
		c := &claims[i]
		var a *attempt
		switch handle := w.handlers[c.Kind]; {
		case w.stopping.Load(), len(started) == out.slots:
			a = back(l, c, 0)
		case handle == nil:
			w.warnUnknown(c)
			a = back(l, c, unknownRest)
		default:
			a = newAttempt(w.root, l, w.id, handle, c, received)
			started = append(started, a)
		}
		l.held[a.held()] = a
		if a.ended {
			l.ended = append(l.ended, a)
		}
	}
	w.counts.started.Add(int64(len(started)))
	w.counts.running.Add(int64(len(started)))
	return started
}

func (w *Worker) warnUnknown(c *queue.Claim) {
	w.counts.unknown.Add(1)
	if w.unknown.pass(c.Kind) {
		w.log.Warn("A task's kind has no handler here: it is given back", "kind", c.Kind, "queue", c.Queue, "task_id", c.ID)
	}
}

// sated decides, by the answer to an ask, whether the partition has nothing more for
// us, and has it waited for. Caller holds mu.
func (l *lane) sated(ask queue.Ask, got int, more bool) bool {
	if got == 0 && more {
		l.barren++
	} else {
		l.barren = 0
	}
	switch {
	case !l.hungry:
		return true
	case got == ask.N:
		return false
	case more && l.barren < 10:
		return false
	case ask.Seq != l.seq || ask.Seq <= l.since:
		return false // a later ask, or a token that came meanwhile, knows better
	}
	l.hungry = false
	notify(l.idle)
	return true
}

func (l *lane) count(a *attempt, v queue.Verdict) {
	c := &l.w.counts
	switch {
	case !v.Accepted():
		c.refused.Add(1)
		l.w.log.Debug("An outcome was refused: the task is not this worker's any more", "task_id", a.claim.ID,
			"verb", string(a.outcome.Verb), "verdict", v.Word, "status", string(v.Status))
	case a.outcome.Verb == queue.Complete:
		c.completed.Add(1)
	case a.outcome.Verb == queue.Fail:
		c.failed.Add(1)
	default:
		c.released.Add(1)
	}
}

// missed keeps or drops the outcomes of a trip that failed, and says how long to
// wait before the next one.
func (l *lane) missed(out *load, err error) time.Duration {
	l.mu.Lock()
	l.settle(out.ask.Seq)
	kept, dropped := l.sort(out.attempts, err)
	l.ended = append(kept, l.ended...)
	for _, a := range dropped {
		delete(l.held, a.held())
	}
	l.pause = min(max(2*l.pause, 50*time.Millisecond), time.Second)
	pause := l.pause
	woken := l.satisfied(out.slots) // it has no claim to a share while it cannot ask
	out.slots = 0
	l.mu.Unlock()
	wakeAll(woken)

	l.w.counts.dropped.Add(int64(len(dropped)))
	l.w.complain(l.partition, "A trip to Redis failed; the worker goes on trying", err,
		"outcomes_kept", len(kept), "outcomes_dropped", len(dropped))
	return pause
}

// sort says which outcomes of a failed trip travel again. Caller holds mu.
//
// What certainly had no effect is sent again. What may have had one was repeated for
// as long as that is safe: the record or the lease decides. What Redis refuses
// because of what is in it is sent again one by one, so that one poison outcome
// costs nobody else's.
func (l *lane) sort(attempts []*attempt, err error) (kept, dropped []*attempt) {
	switch {
	case errors.Is(err, queue.ErrUnknown):
		return nil, attempts
	case errors.Is(err, queue.ErrUnavailable):
		return attempts, nil
	}
	for _, a := range attempts {
		if a.tries++; a.tries < maxTries {
			kept = append(kept, a)
		} else {
			dropped = append(dropped, a)
		}
	}
	l.careful = max(l.careful, len(kept))
	return kept, dropped
}

// complain logs what goes wrong in a partition, at once and then at most every ten
// seconds.
func (w *Worker) complain(partition int, what string, err error, more ...any) {
	if errors.Is(err, context.Canceled) || !w.trouble.pass(strconv.Itoa(partition)) {
		return
	}
	w.log.Error(what, append([]any{"partition", partition, "error", err}, more...)...)
}

// reportKeys logs the keys that a call could not use. It has done everything else.
func (w *Worker) reportKeys(partition int, keys []string) {
	if len(keys) > 0 {
		w.complain(partition, "Redis holds keys that cannot be used; everything else was done", errors.New(strings.Join(keys, "; ")))
	}
}

// rest pauses, but not beyond the worker's end.
func (w *Worker) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.errand.Done():
	}
}

func notify(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default: // one is as good as many
	}
}
