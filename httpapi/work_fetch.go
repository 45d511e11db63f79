package httpapi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

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
func (b *askBody) read() (queue.Ask, *failure) {
	ask := queue.Ask{N: 1, Lease: usualLease}
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
func (b *askBody) quotas(ask *queue.Ask) *failure {
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
		ask.Quotas = append(ask.Quotas, queue.Quota{Queue: name, N: n})
	}
	return nil
}

// fetch takes tasks, and waits for some as long as the request says. A client that is gone takes none. If it leaves while a call to
// Redis is under way, the claims of this call stay with the worker: a repeat of the request gets them, and without one they are given
// back by a heartbeat that knows this seq, or when the lease ends.
func (c *call) fetch(ask queue.Ask) (*fetched, error) {
	taken, err := c.round(ask, nil)
	if err != nil || !c.waits() || ask.N == 0 || decided(taken) {
		return c.fetched(ask, taken), err
	}
	ctx, over, stop := c.await()
	defer stop()
	for empty := 1; ; empty++ {
		look := taken.Look
		if look == 0 && empty < emptyRounds {
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
			c.passOn(ask, tokens)
			return nil, context.Cause(c.Context)
		}
		if taken, err = c.round(ask, tokens); err != nil || decided(taken) {
			return c.fetched(ask, taken), err
		}
	}
}

// decided reports whether no later round can add a task.
func decided(r queue.Reply) bool { return len(r.Claims) > 0 || r.Repeat || r.Stopping() }

// fetched returns the answer for claims.
func (c *call) fetched(ask queue.Ask, taken queue.Reply) *fetched {
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
