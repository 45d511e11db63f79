package httpapi

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
)

// changedKey finds in the context of a request whether one of its calls has changed something.
type changedKey struct{}

// observe notes the calls that succeed, and those of requests that have written to Redis. Calls of workers that only renew a lease do
// not count as writes: they can be made again. While Redis is a replica, changes end: it may take long until there is another master.
func (s *space) observe(q *queue.Queue) {
	library := q.Engine().Library()
	shard := func(partition int) *shard { return s.shards[min(partition, len(s.shards)-1)] }
	q.Engine().Observe(engine.Observer{
		Called: func(ctx context.Context, partition int, script string, _ time.Duration, err error) {
			if err != nil {
				return
			}
			shard(partition).replied()
			if changed, is := ctx.Value(changedKey{}).(*atomic.Bool); is && !library.Reads(script) && script != "fetch" && script != "heartbeat" {
				changed.Store(true)
			}
		},
		ReadOnly: func(partition int) { shard(partition).endSlow(true) },
	})
}

// afterChange returns the failure of a request that may have changed something before Redis was away, or before its client was removed:
// 503 and 401 would say that it has not.
func (c *call) afterChange(f *failure) *failure {
	why := "Redis did not answer"
	switch {
	case !c.changed.Load():
		if f.Problem.Error.Word == "unavailable" && c.route.Method != http.MethodGet {
			f.Problem.Error.Sentence = "Redis does not answer, and nothing was changed: make the request again later"
		}
		return f
	case f.status == http.StatusUnauthorized:
		why = "its client was no longer known"
	case f.status != http.StatusServiceUnavailable:
		return f
	}
	unknown := fail(http.StatusGatewayTimeout, "unknown", "the request has changed something, and then %s: make it again if it names an id, a key or a call, otherwise read the state first", why).retry(time.Second)
	unknown.cause = f.cause
	return unknown
}
