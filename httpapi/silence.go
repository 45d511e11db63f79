package httpapi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Redis is silent if it replies to no call at all. A slow reply is no silence: a call may stand in line behind many others, and a
// reply may be large. So a read has no deadline of its own. Instead, a request that takes longer than slowAfter wants to know that Redis
// replies. If no call of any request has had a reply for so long, one empty call asks for all of them, and they end with errAway if it has
// none in Config.Silence. That is the price of requests that wait, because they read nothing meanwhile. Others seldom take so long.

// slowAfter is how long a request is under way, and Redis without a reply, before an empty call is made. Together with the usual
// Config.Silence it is less than the second in which clients are promised an answer.
const slowAfter = 250 * time.Millisecond

// ticks is the number of ticks that a silence has.
const ticks = 30

// silence returns a context that ends with errAway after Config.Silence, counted from the last reply of the shard h if h is not nil.
// Time in which this process waits for a processor does not count, because the reply may be there: a tick counts as much when it is late.
func (s *Server) silence(ctx context.Context, h *shard) (_ context.Context, stop func()) {
	// With a deadline, the calls of Redis return at once when the context ends.
	ctx, end := context.WithTimeoutCause(ctx, ticks*s.config.Silence, errAway)
	ctx, cancel := context.WithCancelCause(ctx)
	ticker := time.NewTicker(max(s.config.Silence/ticks, time.Millisecond))
	go func() {
		defer ticker.Stop()
		if count(ctx, h, ticks, ticker.C) {
			cancel(errAway)
		}
	}()
	return ctx, func() { cancel(nil); end() }
}

// count returns true after n ticks without a reply of the shard, and false if the context ends before.
func count(ctx context.Context, h *shard, n int, tick <-chan time.Time) bool {
	var last int64
	if h != nil {
		last = h.lastReply.Load()
	}
	for left := n; left > 0; left-- {
		select {
		case <-tick:
		case <-ctx.Done():
			return false
		}
		if h != nil && h.lastReply.Load() != last {
			last, left = h.lastReply.Load(), n+1
		}
	}
	return true
}

// shard is a part of a namespace that can be silent while the others reply: a partition in a cluster, otherwise the whole namespace.
type shard struct {
	server    *Server
	empty     func(ctx context.Context) error // makes an empty call
	created   time.Time
	lastReply atomic.Int64 // when a call of any request succeeded, in ns since created

	mu     sync.Mutex
	slow   map[context.Context]slowRequest // that share the empty call
	asking bool
}

// slowRequest is a request that has taken longer than slowAfter.
type slowRequest struct {
	end     context.CancelCauseFunc
	changes bool
}

func newShard(s *Server, empty func(ctx context.Context) error) *shard {
	return &shard{server: s, empty: empty, created: time.Now(), slow: map[context.Context]slowRequest{}}
}

func shardsOf(s *Server, q *queue.Queue) []*shard {
	n := 1
	if _, cluster := q.Client().(*redis.ClusterClient); cluster {
		n = q.Partitions()
	}
	shards := make([]*shard, n)
	for p := range shards {
		shards[p] = newShard(s, func(ctx context.Context) error { return claim.Of(q).Answers(ctx, p) })
	}
	return shards
}

// replied notes that a call has succeeded.
func (h *shard) replied() { h.lastReply.Store(int64(time.Since(h.created))) }

// replyHook notes the replies to all commands of a server. Some requests read with pipelines, and wait for connections long before
// their own turn. In a cluster only calls count (observe), because the command alone does not tell which server replied.
type replyHook struct{ shard *shard }

// note is given the error of a call, because those of its commands are set later.
func (h replyHook) note(err error, first redis.Cmder) {
	if (err == nil || errors.Is(err, redis.Nil)) && !repliedWhileLoading[first.Name()] {
		h.shard.replied()
	}
}

// repliedWhileLoading are commands of connections and of operators. Redis replies to them also while it loads its data and can answer
// no request.
var repliedWhileLoading = map[string]bool{"auth": true, "client": true, "config": true, "hello": true, "info": true, "ping": true,
	"readonly": true, "select": true, "subscribe": true, "unsubscribe": true}

// DialHook changes nothing.
func (h replyHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook notes the reply to a command.
func (h replyHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.note(err, cmd)
		return err
	}
}

// ProcessPipelineHook notes the replies to the commands of a pipeline.
func (h replyHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if len(cmds) > 0 {
			h.note(err, cmds[0])
		}
		return err
	}
}

// quiet returns how long no call has succeeded.
func (h *shard) quiet() time.Duration {
	return time.Since(h.created) - time.Duration(h.lastReply.Load())
}

// watch returns a context for a request that ends with errAway when a shard is silent: the shard of the partition that the request waits
// for, or any for -1. A request that changes something also ends when a shard refuses to write.
func (s *space) watch(ctx context.Context, partition int, changes bool) (_ context.Context, leave func()) {
	shards := s.shards
	if len(shards) > 1 && partition >= 0 && partition < len(shards) {
		shards = shards[partition : partition+1]
	}
	ctx, cancel := context.WithCancelCause(ctx)
	slow := time.AfterFunc(slowAfter, func() {
		for _, shard := range shards {
			shard.join(ctx, slowRequest{cancel, changes})
		}
	})
	return ctx, func() {
		slow.Stop()
		cancel(nil)
		for _, shard := range shards {
			shard.leave(ctx)
		}
	}
}

func (h *shard) join(ctx context.Context, r slowRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil { // it has left
		return
	}
	h.slow[ctx] = r
	if !h.asking {
		h.asking = true
		go h.ask()
	}
}

func (h *shard) leave(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.slow, ctx)
}

// ask makes sure that Redis replies while requests are slow, and ends them when it does not.
func (h *shard) ask() {
	for h.needed() {
		if rest := slowAfter - h.quiet(); rest > 0 {
			time.Sleep(rest)
			continue
		}
		ctx, stop := h.server.silence(context.Background(), h)
		err := h.reply(ctx)
		stop()
		if errors.Is(err, errAway) || errors.Is(err, refusal.ErrUnavailable) {
			h.endSlow(false)
		}
	}
}

// needed reports whether requests are slow. If not, the next one that is starts ask again.
func (h *shard) needed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asking = len(h.slow) > 0
	return h.asking
}

// endSlow ends the requests that are slow, or only those that change something.
func (h *shard) endSlow(onlyChanges bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ctx, r := range h.slow {
		if r.changes || !onlyChanges {
			r.end(errAway)
			delete(h.slow, ctx)
		}
	}
}

// reply makes an empty call. It returns why there was no reply until ctx ended, or the error of the reply. A reply to another call
// that has come meanwhile counts as well, unless Redis has been silent since, because the empty call may be in line behind many others.
func (h *shard) reply(ctx context.Context) error {
	start := time.Now()
	err := h.empty(ctx)
	silent := ctx.Err() != nil || errors.Is(err, refusal.ErrUnavailable)
	switch {
	case silent && h.quiet() < min(time.Since(start), h.server.config.Silence):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !silent:
		h.replied() // an error is a reply too, and ask rests after it
	}
	return err
}
