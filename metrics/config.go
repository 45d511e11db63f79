package metrics

import (
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Config adjusts the collectors. The zero value is ready to use. [NewWorker] uses only Prefix, and [NewProcess] only
// Prefix and Timeout.
//
// If a field is invalid, registering the collector returns an error that wraps [refusal.ErrInvalid].
type Config struct {
	// Prefix is the prefix of the names of all metrics. Defaults to [DefaultPrefix].
	Prefix string
	// MaxKinds is the greatest number of kinds with their own label. The tasks of all other kinds
	// have the kind [Other]. The kinds with the most tasks are chosen, by the magnitude of their
	// number, so that all exporters choose the same kinds and a small difference changes nothing.
	// Defaults to 200. It cannot be more than 1,000, because Redis counts only so many kinds
	// separately in each partition.
	MaxKinds int
	// MaxQueues is the same for queues. Defaults to 500.
	MaxQueues int
	// MaxPairs is the greatest number of pairs of a queue and a kind with their own time series. The
	// tasks of all other pairs have the kind [Other] in their queue. Defaults to 1,000.
	MaxPairs int
	// MaxNodes is the greatest number of nodes of flows with their own time series. All other nodes
	// have the node [Other] in their flow. Defaults to 200.
	MaxNodes int
	// CacheFor is the time for which the values of a read of Redis are used again. Defaults to 1 s.
	CacheFor time.Duration
	// Timeout limits a read of Redis. If it takes longer, a scrape returns only up 0. Defaults to 2
	// s.
	Timeout time.Duration
}

// prefixes matches the prefixes that Prometheus accepts in the name of a metric. It has no colon,
// which is for recording rules.
var prefixes = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Check returns an error that wraps [refusal.ErrInvalid] if a field is invalid.
func (c Config) Check() error { return c.complete() }

// complete sets the defaults, and returns an error if a field is invalid.
func (c *Config) complete() error {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if !prefixes.MatchString(c.Prefix) {
		return refusal.Invalid("Prefix", "%q must be letters, digits and _, and must not begin with a digit", refusal.Clip(c.Prefix))
	}
	for _, field := range []struct {
		name            string
		n               *int
		otherwise, most int
	}{{"MaxKinds", &c.MaxKinds, 200, 1000}, {"MaxQueues", &c.MaxQueues, 500, 10_000}, {"MaxPairs", &c.MaxPairs, 1000, 100_000},
		{"MaxNodes", &c.MaxNodes, 200, 10_000}} {
		if *field.n == 0 {
			*field.n = field.otherwise
		}
		if *field.n < 1 || *field.n > field.most {
			return refusal.Invalid(field.name, "%d must be 1 to %d", *field.n, field.most)
		}
	}
	for _, field := range []struct {
		name      string
		d         *time.Duration
		otherwise time.Duration
	}{{"CacheFor", &c.CacheFor, time.Second}, {"Timeout", &c.Timeout, 2 * time.Second}} {
		if *field.d == 0 {
			*field.d = field.otherwise
		}
		if *field.d < 0 {
			return refusal.Invalid(field.name, "%v must not be negative", *field.d)
		}
	}
	return nil
}

// checked completes and validates the config of a collector for a namespace.
func (c Config) checked(q *queue.Queue) (Config, error) {
	if err := c.complete(); err != nil {
		return c, refusal.Failed("metrics", "", err)
	}
	return c, refusal.Failed("metrics", "", opened(q))
}

// invalid is the collector for an invalid config, because only the registration can return the
// error.
type invalid struct{ err error }

// Describe implements prometheus.Collector.
func (i invalid) Describe(ch chan<- *prometheus.Desc) { ch <- prometheus.NewInvalidDesc(i.err) }

// Collect implements prometheus.Collector.
func (i invalid) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(i.err), i.err)
}
