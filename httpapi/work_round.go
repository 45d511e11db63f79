package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// round takes tasks once. A seq gets tasks in one round, and then no more. Redis compares the seq in each partition with the newest that
// got tasks there. So in a namespace of several partitions each is first asked what this seq got: otherwise a repeat could get a task of
// another partition. Requests of one worker do so one after the other.
//
// tokens are the wake tokens that the request has taken, by partition.
func (c *call) round(ask queue.Ask, tokens []bool) (queue.Reply, error) {
	if c.q.Partitions() == 1 {
		reply, err := c.q.Attempts().Fetch(c, 0, c.path("worker"), ask)
		c.warn(reply.Errors)
		return reply, err
	}
	leave, err := c.space.turns.enter(c, c.path("worker"))
	if err != nil {
		return queue.Reply{}, err
	}
	defer leave()
	before, err := c.given(ask)
	if err != nil || ask.N == 0 || decided(before) {
		c.passOn(ask, tokens)
		return before, err
	}
	return c.take(ask, tokens)
}

// given returns the tasks that an earlier request with this seq got, and that the worker still holds. It renews the lease of the worker in
// each partition.
func (c *call) given(ask queue.Ask) (queue.Reply, error) {
	ask.N, ask.Quotas = 0, nil
	replies := make([]queue.Reply, c.q.Partitions())
	err := c.q.Engine().EachPartition(func(p int) (err error) {
		replies[p], err = c.q.Attempts().Fetch(c, p, c.path("worker"), ask)
		return err
	})
	all := queue.Reply{Look: time.Minute}
	for _, reply := range replies {
		c.warn(reply.Errors)
		all.Claims = append(all.Claims, reply.Claims...)
		all.Repeat = all.Repeat || reply.Repeat
		all.Look = min(all.Look, reply.Look)
	}
	return all, err
}

// take takes tasks from the partitions in turn, beginning with another one at each seq. A partition whose wake token was taken is
// asked even if there are enough claims: it then wakes another worker.
func (c *call) take(ask queue.Ask, tokens []bool) (queue.Reply, error) {
	all := queue.Reply{Look: time.Minute}
	partitions := c.q.Partitions()
	for i := range partitions {
		p := int((ask.Seq + int64(i)) % int64(partitions))
		some := ask
		if some.N = ask.N - len(all.Claims); some.N == 0 && (tokens == nil || !tokens[p]) {
			all.Look = 0
			continue
		}
		reply, err := c.q.Attempts().Fetch(c, p, c.path("worker"), some)
		if err != nil && len(all.Claims) == 0 {
			return all, err
		}
		if err != nil { // the next fetch gets the error
			all.Look = 0
			break
		}
		c.warn(reply.Errors)
		all.Claims = append(all.Claims, reply.Claims...)
		if all.Look = min(all.Look, reply.Look); reply.Stopping() {
			break
		}
	}
	return all, nil
}

// passOn lets Redis wake another worker for tokens that this request has taken and does not use. Redis does not look at the queues of a
// request whose seq was used, so passOn gives the greatest one.
func (c *call) passOn(ask queue.Ask, tokens []bool) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.Context), c.server.config.Silence)
	defer stop()
	ask.N, ask.Seq = 0, mostSeq
	for p, token := range tokens {
		if token {
			c.q.Attempts().Fetch(ctx, p, c.path("worker"), ask)
		}
	}
}

// turns lets the requests of a worker take tasks one after the other.
type turns struct {
	mu   sync.Mutex
	over map[string]chan struct{} // by worker: closed when the turn under way is over
}

// enter waits for the turn of a worker. The caller ends its turn by leave.
func (t *turns) enter(ctx context.Context, worker string) (leave func(), err error) {
	for {
		over, mine := t.begin(worker)
		if mine {
			return func() { t.end(worker) }, nil
		}
		select {
		case <-over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// begin begins a turn if none is under way.
func (t *turns) begin(worker string) (over chan struct{}, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if over, busy := t.over[worker]; busy {
		return over, false
	}
	if t.over == nil {
		t.over = map[string]chan struct{}{}
	}
	t.over[worker] = make(chan struct{})
	return t.over[worker], true
}

func (t *turns) end(worker string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.over[worker])
	delete(t.over, worker)
}
