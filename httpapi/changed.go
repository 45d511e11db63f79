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

// noteChanges notes the calls of requests that have written to Redis. Those of workers that only renew a lease do not count: they can
// be made again. A call that writes also shows that Redis does not refuse writes any more.
func (s *space) noteChanges(q *queue.Queue) {
	library := q.Engine().Library()
	q.Engine().Observe(engine.Observer{Called: func(ctx context.Context, script string, _ time.Duration, err error) {
		if err != nil || library.Reads(script) {
			return
		}
		if len(s.shards) == 1 {
			s.shards[0].ears.refused.forget()
		}
		if changed, is := ctx.Value(changedKey{}).(*atomic.Bool); is && script != "fetch" && script != "heartbeat" {
			changed.Store(true)
		}
	}})
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
