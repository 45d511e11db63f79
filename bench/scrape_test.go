package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
)

// BenchmarkScrape measures what a scrape of the metrics costs:
//
//	go test ./bench -run '^$' -bench Scrape
func BenchmarkScrape(b *testing.B) {
	for name, c := range map[string]scraped{
		"pairs=200":  {tasks: 500_000, queues: 50, kinds: 200, spread: 1},
		"pairs=1000": {tasks: 20_000, queues: 50, kinds: 200, spread: 5},
	} {
		b.Run(name, func(b *testing.B) {
			figures(b, func(ctx context.Context, rdb redis.UniversalClient) (Report, error) {
				return measureScrapes(ctx, rdb, c)
			})
		})
	}
}

// scraped is what the namespace has while scrapes are measured.
type scraped struct {
	tasks  int // live tasks, each with a deadline
	queues int
	kinds  int
	spread int // number of queues in which each kind has tasks
}

// scrapes is the number of scrapes that are measured together, so that the processor time of Redis is precise enough.
const scrapes = 20

// measureScrapes measures one scrape of a namespace's metrics: how long it takes, how large its text is, and how much processor
// time Redis uses for it. It measures an empty namespace first.
func measureScrapes(ctx context.Context, rdb redis.UniversalClient, c scraped) (Report, error) {
	r := Report{Bench: "scrape"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	if err := r.addScrapes(ctx, "empty", q); err != nil {
		return r, err
	}
	if err := fillScrape(ctx, q, c); err != nil {
		return r, err
	}
	if err := r.addScrapes(ctx, "full", q); err != nil {
		return r, err
	}
	began := time.Now()
	for range scrapes {
		if _, err := inspect.Figures(ctx, q); err != nil {
			return r, err
		}
	}
	r.add("full: reading the figures alone", time.Since(began).Seconds()*1000/scrapes, "ms")
	return r, nil
}

// fillScrape enqueues the tasks that stay. Then it makes figures: of each kind and queue a few tasks have ended in different
// ways, after different times.
func fillScrape(ctx context.Context, q *queue.Queue, c scraped) error {
	task := func(i int) queue.Task {
		kind := i % c.kinds
		line := (kind + i/c.kinds%c.spread*max(c.queues/c.spread, 1)) % c.queues
		return queue.Task{Kind: fmt.Sprint("kind", kind), Queue: fmt.Sprint("queue", line), Timeout: time.Hour, Payload: payload()}
	}
	for from := 0; from < c.tasks; from += 10_000 {
		list := tasks(min(10_000, c.tasks-from), func(i int) queue.Task { return task(from + i) })
		if _, err := q.EnqueueAll(ctx, list); err != nil {
			return err
		}
	}
	for _, pause := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		for from := 0; from < c.kinds*c.spread; from += 500 {
			ended := tasks(min(500, c.kinds*c.spread-from), func(i int) queue.Task { return task(from + i) })
			if err := endTasks(ctx, q, ended, pause); err != nil {
				return err
			}
		}
	}
	return nil
}

// endTasks runs tasks at the head of their lines: half of them complete, and half fail.
func endTasks(ctx context.Context, q *queue.Queue, list []queue.Task, pause time.Duration) error {
	quotas := map[string]int{}
	for i := range list {
		list[i].Priority = 3
		quotas[list[i].Queue]++
	}
	if _, err := q.EnqueueAll(ctx, list); err != nil {
		return err
	}
	worker := queue.NewCall()
	ask := claim.Ask{Lease: time.Minute}
	for name, n := range quotas {
		ask.Quotas = append(ask.Quotas, claim.Quota{Queue: name, N: n})
		ask.N += n
	}
	var claims []queue.Claim
	for range len(list) { // a fetch takes tasks of a bounded number of queues
		ask.Seq++
		reply, err := claim.Of(q).Fetch(ctx, 0, worker, ask)
		if err != nil {
			return err
		}
		if claims = append(claims, reply.Claims...); len(claims) >= len(list) || len(reply.Claims) == 0 {
			break
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	var outcomes []queue.Outcome
	for i, held := range claims {
		o := queue.Outcome{ID: held.ID, Epoch: held.Epoch, Verb: queue.Complete}
		if i%2 == 1 {
			o.Verb, o.Class, o.Error = queue.Fail, queue.ClassFailed, "an error"
		}
		outcomes = append(outcomes, o)
	}
	for len(outcomes) > 0 {
		some := outcomes[:min(100, len(outcomes))]
		if _, err := claim.Of(q).Settle(ctx, 0, worker, queue.NewCall(), some, claim.Ask{}); err != nil {
			return err
		}
		outcomes = outcomes[len(some):]
	}
	return nil
}

// addScrapes measures scrapes, each of which has as much time as in curfew serve, and reads Redis again. Totals that take longer are read
// in the background, as in curfew serve.
func (r *Report) addScrapes(ctx context.Context, what string, q *queue.Queue) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewNamespace(q, metrics.Config{CacheFor: time.Nanosecond, Timeout: 900 * time.Millisecond}))
	handler := metrics.Handler(registry)
	var size int
	var longest time.Duration
	up := []byte("\ncurfew_up{namespace=\"" + q.Namespace() + "\"} 1\n")
	scrape := func() (complete bool, err error) {
		began := time.Now()
		request, answer := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if size = answer.Body.Len(); answer.Code != http.StatusOK {
			return false, fmt.Errorf("a scrape is answered with %d", answer.Code)
		}
		longest = max(longest, time.Since(began))
		return bytes.Contains(answer.Body.Bytes(), up), ctx.Err()
	}
	for { // until the totals have been read once
		if complete, err := scrape(); err != nil {
			return err
		} else if complete {
			break
		}
	}
	longest = 0
	before, err := cpu(ctx, q.Client())
	if err != nil {
		return err
	}
	began := time.Now()
	for range scrapes {
		if _, err := scrape(); err != nil {
			return err
		}
	}
	took := time.Since(began)
	after, err := cpu(ctx, q.Client())
	r.add(what+": time of a scrape", took.Seconds()*1000/scrapes, "ms")
	r.add(what+": longest scrape", longest.Seconds()*1000, "ms")
	r.add(what+": processor time of Redis for a scrape", (after[0]-before[0])*1000/scrapes, "ms")
	r.add(what+": processor time of the exporter for a scrape", (after[1]-before[1])*1000/scrapes, "ms")
	r.add(what+": text of a scrape", float64(size)/1024, "KiB")
	return err
}
