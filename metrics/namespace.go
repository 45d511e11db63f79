package metrics

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// NewNamespace returns a collector of the metrics that are counted in Redis: the rows of [All] with
// the Source [FromNamespace]. All exporters of a namespace return the same values, so one exporter
// is enough. If there are several, a query takes the max over them.
//
// A scrape reads Redis, unless another scrape did so in the last Config.CacheFor. Concurrent scrapes
// share a read. If Redis cannot be read, the scrape returns up 0 after Config.Timeout at most, and
// no other value of the namespace. If only some keys cannot be read, because they are damaged or a
// right is missing, up is 0 too, but only the values that depend on these keys are missing. So a
// value is never 0 or too small because it could not be read. The queue's logger gets the reason
// once.
//
// If q is nil, or the config is invalid, registering the collector returns an error.
func NewNamespace(q *queue.Queue, config Config) prometheus.Collector {
	config, err := config.checked(q)
	if err != nil {
		return invalid{err}
	}
	return newNamespace(q.Namespace(), config, q.Logger(), func(context.Context) (*queue.Queue, error) { return q, nil })
}

// OpenNamespace is [NewNamespace] for a namespace that may not be open yet, because Redis is
// unreachable. Each scrape calls open, so open must return the same Queue once it has opened it.
// Until then, the scrape returns up 0.
func OpenNamespace(name string, open func(context.Context) (*queue.Queue, error), logger *slog.Logger, config Config) prometheus.Collector {
	if err := config.complete(); err != nil {
		return invalid{refusal.Failed("metrics", "", err)}
	}
	if open == nil || logger == nil {
		return invalid{refusal.Failed("metrics", "", refusal.Invalid("open and logger", "must not be nil"))}
	}
	return newNamespace(name, config, logger, open)
}

func newNamespace(name string, config Config, logger *slog.Logger, open func(context.Context) (*queue.Queue, error)) prometheus.Collector {
	n := &namespace{families: families(config.Prefix, name, FromNamespace), name: name, log: logger}
	counted := newTotals(open, config, n.families)
	n.snapshots = shared[*snapshot]{keep: always(config.CacheFor), wait: config.Timeout, read: func(ctx context.Context) *snapshot {
		q, err := open(ctx)
		if err != nil {
			return &snapshot{away: true, err: err}
		}
		return readSnapshot(ctx, q, config, counted)
	}}
	return n
}

// opened returns an error for a queue that queue.Open did not return.
func opened(q *queue.Queue) error { return q.Ready(context.Background()) }

// namespace exports the counts in Redis.
type namespace struct {
	families  map[string]family
	snapshots shared[*snapshot]
	name      string
	log       *slog.Logger

	mu     sync.Mutex
	state  string // the state that was logged last: "", away or in part
	folded bool   // whether it was logged that queues and kinds share a label
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
	n.logChange(s)
	n.logFolded(s)
	out.flag("up", s.err == nil && s.totals != nil)
	out.add("scrape_duration_seconds", s.took.Seconds())
	if !s.away {
		if s.totals != nil {
			s.totals.samples.send(ch)
			out.add("totals_read_timestamp_seconds", seconds(s.totals.began))
			out.add("pairs_folded", float64(s.totals.labels.folded))
		}
		out.addTasks(s)
		out.addDeadlines(s)
		out.addFleet(s)
		for _, facts := range s.servers {
			out.flag("redis_info", true, facts["redis_version"], facts["redis_mode"], facts["maxmemory_policy"])
		}
	}
	out.send(ch)
}

// logChange logs when Redis can no longer be read, or only in part, and when everything can be read
// again. It does not log the same state twice, because scrapes come again and again.
func (n *namespace) logChange(s *snapshot) {
	state := map[bool]string{true: "away", false: "in part"}[s.away]
	if s.err == nil {
		state = ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if state == n.state {
		return
	}
	switch n.state = state; state {
	case "":
		n.log.Info("The metrics can be read from Redis again", "namespace", n.name)
	case "away":
		n.log.Warn("The metrics cannot be read from Redis", "namespace", n.name, "error", s.err)
	default:
		n.log.Warn("Some metrics cannot be read from Redis: run curfew fsck", "namespace", n.name, "error", s.err)
	}
}

// logFolded logs once when queues and kinds begin to share the label Other.
func (n *namespace) logFolded(s *snapshot) {
	if s.totals == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	folded := s.totals.labels.folded
	if folded > 0 && !n.folded {
		n.log.Warn("Some queues and kinds have no label of their own in the metrics: see curfew_pairs_folded", "namespace", n.name, "pairs", folded, "pairs_with_labels", len(s.totals.labels.pairs))
	}
	n.folded = folded > 0
}
