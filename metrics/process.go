package metrics

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// NewProcess returns a collector of the metrics of this process for a namespace: the rows of [All]
// with the Source [FromProcess]. It counts the calls and sweeps that are made with q from now on,
// including those of reapers that workers share. Other namespaces that a program has opened need
// their own collectors.
//
// If q is nil, or the config is invalid, registering the collector returns an error.
func NewProcess(q *queue.Queue, config Config) prometheus.Collector {
	config, err := config.checked(q)
	if err != nil {
		return invalid{err}
	}
	metrics := families(config.Prefix, q.Namespace(), FromProcess)
	counter := func(name string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: config.Prefix + name, Help: metrics[name].Help,
			ConstLabels: prometheus.Labels{"namespace": clean(q.Namespace())}}, metrics[name].Labels)
	}
	c := &process{families: metrics, scripts: newHistogram(config.Prefix, q.Namespace(), metrics["script_duration_seconds"]),
		errors: counter("script_errors_total"), batches: counter("reaper_batches_total"), full: counter("reaper_batch_full_total")}
	c.batches.WithLabelValues()
	c.full.WithLabelValues()
	c.offset = shared[*time.Duration]{keep: always(10 * time.Second), wait: config.Timeout,
		read: func(ctx context.Context) *time.Duration { return clockOffset(ctx, q) }}
	q.Engine().Observe(engine.Observer{Called: c.called, Swept: c.swept})
	return c
}

type process struct {
	families              map[string]family
	scripts               *prometheus.HistogramVec
	errors, batches, full *prometheus.CounterVec
	offset                shared[*time.Duration] // nil if Redis did not answer
}

func (p *process) called(ctx context.Context, _ int, script string, took time.Duration, err error) {
	observe(ctx, p.scripts.WithLabelValues(script), took, "")
	if err != nil {
		p.errors.WithLabelValues(script, codeOf(err)).Inc()
	}
}

func (p *process) swept(full bool) {
	p.batches.WithLabelValues().Inc()
	if full {
		p.full.WithLabelValues().Inc()
	}
}

// Describe implements prometheus.Collector.
func (p *process) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range p.families {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (p *process) Collect(ch chan<- prometheus.Metric) {
	out := newSamples(p.families)
	out.flag("build_info", true, version(), runtime.Version())
	if offset, ok := p.offset.get(); ok && offset != nil {
		out.add("clock_offset_seconds", offset.Seconds())
	}
	out.send(ch)
	for _, c := range []prometheus.Collector{p.scripts, p.errors, p.batches, p.full} {
		c.Collect(ch)
	}
}

// clockOffset returns the difference between the clock of this process and the clock of Redis,
// positive if the former is ahead. It assumes that Redis read its clock in the middle of the round
// trip.
func clockOffset(ctx context.Context, q *queue.Queue) *time.Duration {
	node, err := q.Engine().Node(ctx, 0)
	if err != nil {
		return nil
	}
	sent := time.Now()
	now, err := node.Time(ctx).Result()
	if err != nil {
		return nil
	}
	offset := sent.Add(time.Since(sent) / 2).Sub(now)
	return &offset
}

// module is the path of this module.
const module = "github.com/curfew-dev/curfew"

// version returns the version of Curfew in this program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	self := info.Main
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			self = *dependency
		}
	}
	if self.Path != module || self.Version == "" || self.Version == "(devel)" {
		return unknown
	}
	return strings.TrimPrefix(self.Version, "v")
}

// codes are the labels of errors. The first match counts.
var codes = []struct {
	err  error
	code string
}{
	{refusal.ErrUnknown, "unknown"}, {context.Canceled, "cancelled"}, {context.DeadlineExceeded, "deadline"},
	{refusal.ErrUnavailable, "unavailable"}, {refusal.ErrNoAccess, "no_access"}, {refusal.ErrMismatch, "mismatch"}, {refusal.ErrFull, "full"},
	{refusal.ErrNoRight, "no_right"}, {refusal.ErrWrongType, "wrong_type"}, {refusal.ErrBroken, "broken"}, {refusal.ErrClosed, "closed"},
	{refusal.ErrRemoving, "removing"}, {refusal.ErrNewer, "newer"}, {refusal.ErrOlder, "older"}, {refusal.ErrUnfit, "unfit"},
	{refusal.ErrPartitions, "partitions"}, {refusal.ErrNoNamespace, "no_namespace"}, {refusal.ErrInvalid, "invalid"},
}

func codeOf(err error) string {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return "other"
}
