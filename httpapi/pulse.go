package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// state is what a look at a shard has found.
type state struct {
	err     error // why its reply was not in time, or nil
	refuses bool  // it refuses writes
}

// silent reports whether the shard has not replied at all, or cannot.
func (s state) silent() bool {
	return errors.Is(s.err, errAway) || errors.Is(s.err, refusal.ErrUnavailable) || errors.Is(s.err, refusal.ErrUnknown)
}

// look makes an empty call to each shard. It returns one state if the namespace cannot be opened.
func (s *space) look(ctx context.Context) []state {
	ctx, stop := s.server.silence(ctx)
	defer stop()
	q, err := s.queue(ctx)
	if err != nil {
		return []state{{err: err}}
	}
	s.listen(q)
	all := make([]state, len(s.shards))
	var calls sync.WaitGroup
	for i, shard := range s.shards {
		calls.Go(func() {
			all[i] = state{s.answer(ctx, q, shard), shard.ears.refused.within(s.server.config.Silence)}
		})
	}
	calls.Wait()
	return all
}

// ticks is the number of ticks that a silence has.
const ticks = 30

// silence returns a context that ends with errAway when Redis has been silent for too long. Time in which this process waits for a
// processor does not count, because the reply may be there: a tick counts as much when it is late.
func (s *Server) silence(ctx context.Context) (_ context.Context, stop func()) {
	// With a deadline, the calls of Redis return at once when the context ends.
	ctx, end := context.WithTimeoutCause(ctx, ticks*s.config.Silence, errAway)
	ctx, cancel := context.WithCancelCause(ctx)
	ticker := time.NewTicker(max(s.config.Silence/ticks, time.Millisecond))
	go func() {
		defer ticker.Stop()
		if count(ctx, ticks, ticker.C) {
			cancel(errAway)
		}
	}()
	return ctx, func() { cancel(nil); end() }
}

// count returns true after n ticks, and false if the context ends before.
func count(ctx context.Context, n int, tick <-chan time.Time) bool {
	for range n {
		select {
		case <-tick:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// answer returns why a shard has not replied in time, or nil.
func (s *space) answer(ctx context.Context, q *queue.Queue, shard *shard) error {
	err := q.Attempts().Answers(ctx, shard.partition)
	silent := ctx.Err() != nil || errors.Is(err, refusal.ErrUnavailable)
	switch {
	case !silent:
		return err
	case shard.ears.heard.within(s.server.config.Silence) && !shard.ears.unable.within(s.server.config.Silence): // other requests got replies
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// watch returns a context for a request, which ends with errAway when Redis is silent, and with errTooLong when the request takes
// longer than most. A long answer is no silence: while requests are under way, an empty call is made again and again. A request that
// changes something also ends with errAway while Redis refuses writes, so that it need not wait until there is another master. A
// request that waits for one partition, instead of all (-1), does not end when another one is silent.
func (s *space) watch(ctx context.Context, most time.Duration, changes bool, partition int) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	// With a deadline, the calls of Redis return at once when the context ends.
	ctx, stop := context.WithTimeoutCause(ctx, most, errTooLong)
	leave := s.pulse.join(s, watcher{cancel, changes, partition, time.Now()})
	return ctx, func() {
		leave()
		stop()
		cancel(nil)
	}
}

// pulse notices for all requests of a namespace that Redis is silent.
type pulse struct {
	mu      sync.Mutex
	next    int
	waiting map[int]watcher
	runs    bool
}

// watcher is a request that is under way.
type watcher struct {
	away      context.CancelCauseFunc
	changes   bool
	partition int // that the request waits for; -1: all
	began     time.Time
}

// join calls away when Redis is silent, until leave.
func (p *pulse) join(s *space, w watcher) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[int]watcher{}
	}
	p.next++
	mine := p.next
	p.waiting[mine] = w
	if !p.runs {
		p.runs = true
		go p.run(s)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, mine)
	}
}

const (
	// between is the time between two looks.
	between = 250 * time.Millisecond
	// usual is how long a request takes that does not need a silent partition. Younger requests are not ended.
	usual = 100 * time.Millisecond
)

// run looks until no request is under way.
func (p *pulse) run(s *space) {
	for {
		time.Sleep(between)
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.runs = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		states := s.look(context.Background())
		p.mu.Lock()
		for _, w := range p.waiting {
			if w.mustEnd(states) {
				w.away(errAway)
			}
		}
		p.mu.Unlock()
	}
}

// mustEnd reports whether the request cannot do its work, as the shards are.
func (w watcher) mustEnd(states []state) bool {
	for i, state := range states {
		spared := len(states) > 1 && (w.partition >= 0 && w.partition != i || time.Since(w.began) < usual)
		if !spared && (state.silent() || w.changes && state.refuses) {
			return true
		}
	}
	return false
}
