package metrics

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/queue"
)

// NewNamespace returns a collector of the metrics that are counted in Redis: the rows of [All] with the Source
// [FromNamespace]. All exporters of a namespace have the same values, so one exporter is enough. If there are several, a
// query takes the max over them.
//
// A scrape reads Redis, unless another scrape did so in the last Config.CacheFor. Concurrent scrapes share a read. A scrape
// during which Redis cannot be read returns up 0 after Config.Timeout at most, and no other value. If only some keys
// cannot be read, because they are damaged or a right is missing, up is 0 and all other values are there. The logger of the
// queue gets the reason when it changes.
//
// If q is nil, or the config is invalid, registering the collector returns an error.
func NewNamespace(q *queue.Queue, config Config) prometheus.Collector {
	config, err := config.checked(q)
	if err != nil {
		return invalid{err}
	}
	n := &namespace{families: families(config.Prefix, q.Namespace(), FromNamespace), log: q.Logger()}
	n.snapshots = shared[*snapshot]{keep: config.CacheFor, wait: config.Timeout,
		read: func(ctx context.Context) *snapshot { return readSnapshot(ctx, q, config) }}
	return n
}

// opened returns an error for a queue that queue.Open did not return.
func opened(q *queue.Queue) error { return q.Ready(context.Background()) }

// namespace exports what Redis counts.
type namespace struct {
	families  map[string]family
	snapshots shared[*snapshot]
	log       *slog.Logger

	mu   sync.Mutex
	said string // the last error that was logged
}

// Describe implements prometheus.Collector.
func (n *namespace) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range n.families {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (n *namespace) Collect(ch chan<- prometheus.Metric) {
	out := newSamples(n.families)
	s, ok := n.snapshots.get()
	if !ok {
		s = &snapshot{away: true, took: n.snapshots.wait, err: context.DeadlineExceeded}
	}
	n.logChange(s.err)
	out.flag("up", s.err == nil)
	out.add("scrape_duration_seconds", s.took.Seconds())
	if !s.away {
		out.addFigures(s)
		out.addTasks(s)
		out.addDeadlines(s)
		out.addFleet(s)
		for _, facts := range s.servers {
			out.flag("redis_info", true, facts["redis_version"], facts["redis_mode"], facts["maxmemory_policy"])
		}
	}
	out.send(ch)
}

// logChange logs why Redis cannot be read, once for each reason.
func (n *namespace) logChange(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case text == n.said:
	case text == "":
		n.log.Info("The metrics can be read from Redis again")
	default:
		n.log.Warn("The metrics cannot be read from Redis, or not all of them", "error", err)
	}
	n.said = text
}

