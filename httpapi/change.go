package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
)

// changedKey is the context key of a request's flag for calls that have changed something.
type changedKey struct{}

// observe notes the replies of Redis, and the requests that have written to it. Calls of workers that only renew a lease do
// not count as writes: they can be made again. While Redis is a replica, changes end: it may take long until there is another master.
func (s *space) observe(q *queue.Queue) {
	library := q.Engine().Library()
	cluster := len(s.shards) > 1
	if !cluster {
		q.Client().AddHook(replyHook{s.shards[0]})
	}
	shard := func(partition int) *shard { return s.shards[min(partition, len(s.shards)-1)] }
	q.Engine().Observe(engine.Observer{
		Called: func(ctx context.Context, partition int, script string, _ time.Duration, err error) {
			if err != nil {
				return
			}
			if cluster { // otherwise the hook has noted the reply
				shard(partition).replied()
			}
			if changed, ok := ctx.Value(changedKey{}).(*atomic.Bool); ok && !library.Reads(script) && script != "fetch" && script != "heartbeat" {
				changed.Store(true)
			}
		},
		ReadOnly: func(partition int) { shard(partition).endSlow(true) },
	})
}

// unknownIfChanged returns the failure of a request that may have changed something before Redis was away, or before its client was removed:
// 503 and 401 would say that it has not.
func (c *call) unknownIfChanged(f *failure) *failure {
	cause := "Redis did not answer"
	switch {
	case !c.changed.Load():
		if f.Problem.Error.Word == "unavailable" && c.route.Method != http.MethodGet {
			f.Problem.Error.Sentence = "Redis does not answer, and nothing was changed: make the request again later"
		}
		return f
	case f.status == http.StatusUnauthorized:
		cause = "its client was no longer known"
	case f.status != http.StatusServiceUnavailable:
		return f
	}
	unknown := fail(http.StatusGatewayTimeout, "unknown", "the request has changed something, and then %s: make it again if it names an id, a key or a call, otherwise read the state first", cause).retry(time.Second)
	unknown.cause = f.cause
	return unknown
}

// logChange logs a request that changes something, with the names of the client, the task, the queue and so on. The message
// distinguishes changes that were made, were refused, or are unknown.
func (c *call) logChange(status int, answer any, start time.Time) {
	log := c.server.log.With("who", c.who.Name, "method", c.route.Method, "route", c.route.Path, "namespace", c.request.PathValue("namespace"),
		"task_id", c.task, "status", status, "remote", c.request.RemoteAddr, "ms", time.Since(start).Milliseconds())
	for _, about := range []struct{ key, value string }{
		{"queue", cmp.Or(c.path("queue"), c.queue)}, {"kind", cmp.Or(c.path("kind"), c.kind)}, {"worker", c.path("worker")}, {"query", c.request.URL.RawQuery},
	} {
		if about.value != "" {
			log = log.With(about.key, clip.Text(about.value, mostLogged))
		}
	}
	if many, ok := answer.(interface{ tasks() int }); ok {
		log = log.With("tasks", many.tasks())
	}
	switch {
	case status < http.StatusBadRequest && c.renews:
		log.Debug("HTTP request")
	case status < http.StatusBadRequest:
		log.Info("HTTP change")
	case status == http.StatusInternalServerError || status == http.StatusGatewayTimeout:
		log.Info("HTTP change unknown") // it may have had its effect
	default:
		log.Info("HTTP change refused")
	}
}

// mostLogged is how many bytes of a value are logged. A name that is valid has fewer.
const mostLogged = 256

// How many tasks an answer is about, for the log.

func (a enqueuedLines) tasks() int { return len(a.Tasks) }

func (a childLines) tasks() int { return len(a.Results) }

func (a resultLines) tasks() int { return len(a.Results) }

func (a outcomes) tasks() int { return len(a.Tasks) }

func (a drained) tasks() int { return int(a.Cancelled) }

func (a *fetched) tasks() int { return len(a.Claims) }

func (a settledTasks) tasks() int { return len(a.Outcomes) }
