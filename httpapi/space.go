package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// space is a namespace that is served.
type space struct {
	server *Server
	name   string
	pulse  pulse
	idle   idle // requests that wait for tasks
	hub    hub  // requests that wait for events

	mu     sync.Mutex
	opened *queue.Queue
	open   *opening // under way

	listens sync.Once
	ears    ears
}

// listen notes each reply that the client of the namespace gets. Many requests at once can keep the empty call waiting for a
// connection, although Redis replies to the others.
func (s *space) listen(q *queue.Queue) {
	s.listens.Do(func() {
		q.Client().AddHook(&s.ears)
		noteChanges(q)
	})
}

// ears is a hook that notes when a reply came. The zero value has heard nothing.
type ears struct {
	heard   moment // any reply
	refused moment // Redis refused a write, because it is a replica
	unable  moment // Redis refused a read too: it loads its data, or has lost its master
}

// moment is an instant that goroutines share.
type moment struct{ ns atomic.Int64 }

func (m *moment) now() { m.ns.Store(time.Now().UnixNano()) }

// within reports whether it was less than d ago.
func (m *moment) within(d time.Duration) bool { return time.Since(time.Unix(0, m.ns.Load())) < d }

func (e *ears) note(err error) {
	switch {
	case redis.HasErrorPrefix(err, "LOADING"), redis.HasErrorPrefix(err, "MASTERDOWN"), redis.HasErrorPrefix(err, "CLUSTERDOWN"):
		e.unable.now()
	case redis.HasErrorPrefix(err, "READONLY"):
		e.refused.now()
		e.heard.now() // it can be read
	case err == nil || lua.Raised(err) || errors.Is(err, redis.Nil):
		e.heard.now()
	}
}

// DialHook changes nothing.
func (e *ears) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook notes the reply to a command.
func (e *ears) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		e.note(err)
		return err
	}
}

// ProcessPipelineHook notes the replies to several commands.
func (e *ears) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		e.note(err)
		return err
	}
}

// opening is an attempt to open the namespace. Requests share it.
type opening struct {
	done chan struct{}
	q    *queue.Queue
	err  error
}

// queue returns the opened namespace, and opens it if that was not done yet. It waits as long as Redis may be silent.
func (s *space) queue(ctx context.Context) (*queue.Queue, error) {
	s.mu.Lock()
	if s.opened != nil {
		defer s.mu.Unlock()
		return s.opened, nil
	}
	if s.open == nil {
		s.open = &opening{done: make(chan struct{})}
		go s.try(s.open)
	}
	o := s.open
	s.mu.Unlock()
	silent := time.NewTimer(s.server.config.Silence)
	defer silent.Stop()
	select {
	case <-o.done:
		return o.q, o.err
	case <-silent.C:
		return nil, errAway
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *space) try(o *opening) {
	ctx, stop := context.WithTimeout(s.server.draining, 10*time.Second)
	defer stop()
	o.q, o.err = s.server.config.Open(ctx, s.name)
	s.mu.Lock()
	s.opened, s.open = o.q, nil
	s.mu.Unlock()
	if o.err != nil {
		s.server.log.Debug("Cannot open the namespace", "namespace", s.name, "error", o.err)
	}
	close(o.done)
}

// answers reports whether a read of the namespace is answered in time.
func (s *space) answers(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, s.server.config.Silence, errAway)
	defer stop()
	q, err := s.queue(ctx)
	if err != nil {
		return err
	}
	s.listen(q)
	err = q.Attempts().Answers(ctx, 0)
	silent := ctx.Err() != nil || errors.Is(err, refusal.ErrUnavailable)
	switch {
	case !silent:
		return err
	case s.ears.heard.within(s.server.config.Silence) && !s.ears.unable.within(s.server.config.Silence): // other requests got replies
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// watch returns a context for a request, which ends with errAway when Redis is silent, and with errTooLong when the request takes
// longer than most. A long answer is no silence: while requests are under way, an empty call is made again and again. A request that
// changes something also ends with errAway while Redis refuses writes, so that it need not wait until there is another master.
func (s *space) watch(ctx context.Context, most time.Duration, changes bool) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	// With a deadline, the calls of Redis return at once when the context ends.
	ctx, stop := context.WithTimeoutCause(ctx, most, errTooLong)
	leave := s.pulse.join(s, watcher{cancel, changes})
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
	away    context.CancelCauseFunc
	changes bool
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

// between is the time between two looks.
const between = 250 * time.Millisecond

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
		err := s.answers(context.Background())
		silent := errors.Is(err, errAway) || errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown)
		refuses := s.ears.refused.within(s.server.config.Silence)
		if !silent && !refuses {
			continue
		}
		p.mu.Lock()
		for _, w := range p.waiting {
			if silent || w.changes {
				w.away(errAway)
			}
		}
		p.mu.Unlock()
	}
}

// find returns the namespace of a request.
func (s *Server) find(name string) (*space, *failure) {
	if found := s.spaces[name]; found != nil {
		return found, nil
	}
	return nil, fail(http.StatusNotFound, "no_namespace", "this server does not serve the namespace %q", refusal.Clip(name)).of("namespace")
}
