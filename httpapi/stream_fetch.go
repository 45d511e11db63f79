package httpapi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

const (
	mostClaims  = 500
	mostQueues  = 1000
	usualLease  = 30 * time.Second
	mostLease   = 24 * time.Hour
	mostSeq     = 1 << 53
	emptyRounds = 10 // after so many answers without tasks that promise more, the namespace counts as empty
)

func fetchTasks(c *call) (any, error) {
	var body askBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	ask, f := body.read()
	c.queue = strings.Join(body.Queues, ",")
	if f != nil {
		return nil, f
	}
	answer, err := c.fetch(ask)
	if err != nil {
		return nil, err
	}
	c.renews = len(answer.Claims) == 0
	return answer, nil
}

// read checks a request for tasks.
func (b *askBody) read() (claim.Ask, *failure) {
	ask := claim.Ask{N: 1, Lease: usualLease}
	switch {
	case *b.Seq < 1 || *b.Seq > mostSeq:
		return ask, wrong("seq", "%d must be 1 to 2^53: count the fetches, or use the time in µs", *b.Seq)
	case b.N != nil && (*b.N < 0 || *b.N > mostClaims):
		return ask, wrong("n", "%d must be 0 to %d", *b.N, mostClaims)
	case len(b.Queues) > mostQueues:
		return ask, wrong("queues", "has %d names, and may have %d", len(b.Queues), mostQueues)
	}
	ask.Seq = *b.Seq
	if b.N != nil {
		ask.N = *b.N
	}
	if b.Lease != nil || b.LeaseMs != nil {
		var f *failure
		if ask.Lease, f = spanOf("lease", b.Lease, b.LeaseMs, mostLease); f != nil {
			return ask, f
		}
		if ask.Lease < time.Millisecond {
			return ask, wrong("lease", "must be at least 1ms: a heartbeat with a lease of 0s is goodbye")
		}
	}
	f := b.quotas(&ask)
	return ask, f
}

// quotas reads names of queues. A name can have = and a quota.
func (b *askBody) quotas(ask *claim.Ask) *failure {
	if b.Queues == nil {
		b.Queues = []string{"default"}
	}
	if len(b.Queues) == 0 {
		return wrong("queues", "is empty: name one, or leave it out for the queue default")
	}
	for i, word := range b.Queues {
		at := "queues[" + strconv.Itoa(i) + "]"
		name, quota, has := strings.Cut(word, "=")
		n := ask.N
		if has {
			var err error
			if n, err = strconv.Atoi(quota); err != nil || n < 0 {
				return wrong(at, "must be the name of a queue, or a name, = and a whole number, such as mail=3")
			}
		}
		if err := (&queue.Task{Kind: "k", Queue: name}).Check(0); err != nil || name == "" {
			return wrong(at, "must be the name of a queue: 1 to 128 of A-Z a-z 0-9 . _ - that begins with a letter or digit")
		}
		ask.Quotas = append(ask.Quotas, claim.Quota{Queue: name, N: n})
	}
	return nil
}

// fetch takes tasks, and waits for some up to the limit of the request. A client that is gone takes none. If it leaves while a call to
// Redis is under way, the claims of this call stay with the worker: a repeat of the request gets them, and without one they are given
// back by a heartbeat that knows this seq, or when the lease ends.
func (c *call) fetch(ask claim.Ask) (*fetched, error) {
	taken, err := c.round(ask, nil)
	if err != nil || !c.waits() || ask.N == 0 || final(taken) {
		return c.fetched(ask, taken), err
	}
	ctx, over, stop := c.await()
	defer stop()
	for empty := 1; ; empty++ {
		look := taken.Look
		if taken.Alone {
			look = time.Second - 1 // without a wake token, since another worker could use it
		} else if look == 0 && empty < emptyRounds {
			look = time.Millisecond // more is ready
		} else if look == 0 {
			look, empty = time.Second, 0
		}
		tokens := c.space.idle.await(ctx, c.q, ask, look)
		if !slices.Contains(tokens, true) && ctx.Err() != nil {
			if over() {
				return c.fetched(ask, taken), nil
			}
			return nil, context.Cause(ctx)
		}
		if c.Context.Err() != nil { // the client is gone: another worker gets the token
			c.wakeAnother(ask, tokens)
			return nil, context.Cause(c.Context)
		}
		if taken, err = c.round(ask, tokens); err != nil || final(taken) {
			return c.fetched(ask, taken), err
		}
	}
}

// final reports whether no later round can add a task.
func final(r claim.Reply) bool { return len(r.Claims) > 0 || r.Repeat || r.Stopping() }

// fetched returns the answer for claims.
func (c *call) fetched(ask claim.Ask, taken claim.Reply) *fetched {
	answer := &fetched{Seq: ask.Seq, Claims: make([]claimLine, len(taken.Claims)), WaitMs: max(taken.Look, 0).Milliseconds(), Stop: taken.Stopping()}
	for i := range taken.Claims {
		t := &taken.Claims[i]
		answer.Now = t.Now.UnixMilli()
		answer.Claims[i] = claimLine{t.ID, t.Epoch, t.Kind, t.Queue, t.Attempt(), t.CreatedAt.UnixMilli(), t.Payload, msOf(t.Deadline), msOf(t.AttemptDeadline),
			t.MaxRetries, t.RetryExpression, t.Headers}
	}
	return answer
}

// msOf returns an instant in ms, 0 for none.
func msOf(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// round takes tasks once. A seq gets tasks in one round, and then no more. Redis compares the seq in each partition with the newest that
// got tasks there. So in a namespace of several partitions each is first asked for the tasks of this seq: otherwise a repeat could get a task of
// another partition. Requests of one worker do so one after the other.
//
// tokens are the wake tokens that the request has taken, by partition.
func (c *call) round(ask claim.Ask, tokens []bool) (claim.Reply, error) {
	if c.q.Partitions() == 1 {
		reply, err := claim.Of(c.q).Fetch(c, 0, c.path("worker"), ask)
		c.warn(reply.Errors)
		return reply, err
	}
	leave, err := c.space.turns.enter(c, c.path("worker"))
	if err != nil {
		return claim.Reply{}, err
	}
	defer leave()
	before, err := c.earlierClaims(ask)
	if err != nil || ask.N == 0 || final(before) || before.Alone {
		c.wakeAnother(ask, tokens)
		return before, err
	}
	return c.take(ask, tokens)
}

// earlierClaims returns the tasks that an earlier request with this seq got, and that the worker still holds. It renews the lease of the worker in
// each partition.
func (c *call) earlierClaims(ask claim.Ask) (claim.Reply, error) {
	ask.N, ask.Quotas = 0, nil
	replies := make([]claim.Reply, c.q.Partitions())
	err := c.q.Engine().EachPartition(func(p int) (err error) {
		replies[p], err = claim.Of(c.q).Fetch(c, p, c.path("worker"), ask)
		return err
	})
	total := claim.Reply{Look: time.Minute}
	for _, reply := range replies {
		c.warn(reply.Errors)
		total.Claims = append(total.Claims, reply.Claims...)
		total.Repeat, total.Alone = total.Repeat || reply.Repeat, total.Alone || reply.Alone
		total.Look = min(total.Look, reply.Look)
	}
	return total, err
}

// take takes tasks from the partitions in turn, beginning with another one at each seq. A partition whose wake token was taken is
// asked even if there are enough claims: it then wakes another worker.
func (c *call) take(ask claim.Ask, tokens []bool) (claim.Reply, error) {
	total := claim.Reply{Look: time.Minute}
	partitions := c.q.Partitions()
	for i := range partitions {
		p := int((ask.Seq + int64(i)) % int64(partitions))
		share := ask
		share.Elsewhere = len(total.Claims)
		if share.N = ask.N - len(total.Claims); share.N == 0 && (tokens == nil || !tokens[p]) {
			total.Look = 0
			continue
		}
		reply, err := claim.Of(c.q).Fetch(c, p, c.path("worker"), share)
		if err != nil && len(total.Claims) == 0 {
			return total, err
		}
		if err != nil { // the next fetch gets the error
			total.Look = 0
			break
		}
		c.warn(reply.Errors)
		total.Claims = append(total.Claims, reply.Claims...)
		if total.Look, total.Alone = min(total.Look, reply.Look), reply.Alone; reply.Stopping() || reply.Alone {
			break
		}
	}
	return total, nil
}

// wakeAnother lets Redis wake another worker for tokens that this request has taken and does not use. Redis does not look at the queues of a
// request whose seq was used, so wakeAnother gives the greatest one.
func (c *call) wakeAnother(ask claim.Ask, tokens []bool) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.Context), c.server.config.Silence)
	defer stop()
	ask.N, ask.Seq = 0, mostSeq
	for p, token := range tokens {
		if token {
			claim.Of(c.q).Fetch(ctx, p, c.path("worker"), ask)
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
		superseded, mine := t.begin(worker)
		if mine {
			return func() { t.end(worker) }, nil
		}
		select {
		case <-superseded:
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

// mostLines bounds the connections of requests that wait for tasks: each different list of queues has one for each partition. A
// request with another list looks every second instead.
const mostLines = 64

// shortest is the time between two looks of a request that waits. A shorter lease ends meanwhile.
const shortest = 100 * time.Millisecond

// idle are the requests of a namespace that wait for tasks. Those that wait for the same queues share a connection.
type idle struct {
	mu    sync.Mutex
	lists map[string]int // how many requests wait for a list of queues
}

// enter counts a request. It reports whether the request may have a connection.
func (i *idle) enter(list string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lists == nil {
		i.lists = map[string]int{}
	}
	if i.lists[list] == 0 && len(i.lists) >= mostLines {
		return false
	}
	i.lists[list]++
	return true
}

func (i *idle) leave(list string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lists[list]--; i.lists[list] == 0 {
		delete(i.lists, list)
	}
}

// await returns when a queue may have a task, or ctx ends, or the worker must fetch to keep its lease. look is when to fetch without
// a wake token. It returns the partitions whose tokens it has taken: the caller must fetch from them.
func (i *idle) await(ctx context.Context, q *queue.Queue, ask claim.Ask, look time.Duration) (tokens []bool) {
	ctx, stop := context.WithTimeout(ctx, max(ask.Lease/2, shortest))
	defer stop()
	names := make([]string, len(ask.Quotas))
	for n, quota := range ask.Quotas {
		names[n] = quota.Queue
	}
	slices.Sort(names)
	names = slices.Compact(names)
	list := strings.Join(names, " ")
	tokens = make([]bool, q.Partitions())
	if look < time.Second || !i.enter(list) {
		rest := time.NewTimer(min(look, time.Second))
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
		}
		return tokens
	}
	defer i.leave(list)
	var group sync.WaitGroup
	for p := range tokens {
		group.Go(func() {
			defer stop() // the first answer ends the other waits, which lose no token
			line := claim.Of(q).WakeLine(p, names)
			defer line.Close()
			tokens[p], _ = line.Await(ctx, look) // an error is met by the fetch that follows
		})
	}
	group.Wait()
	return tokens
}
