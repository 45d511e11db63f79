package metrics

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/worker"
)

// NewWorker returns a collector of the metrics of one worker: the rows of [All] with the Source
// [FromWorker]. It adds middleware to the worker, which measures handlers, so it panics after Run,
// as [worker.Worker.Use] does. Call NewWorker after you have added middleware that starts traces,
// because a sampled trace then becomes an exemplar of its handler.
//
// If a program has several workers of a namespace, register each with its own label:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"worker": "mail"}, registry).MustRegister(metrics.NewWorker(w, metrics.Config{}))
//
// If the config is invalid, registering the collector returns an error.
func NewWorker(w *worker.Worker, config Config) prometheus.Collector {
	config, err := config.checked(w.Queue())
	if err != nil {
		return invalid{err}
	}
	table := families(config.Prefix, w.Queue().Namespace(), FromWorker)
	c := &workerCollector{w, table, newHistogram(config.Prefix, w.Queue().Namespace(), table["worker_handler_seconds"])}
	w.Use(c.measure)
	return c
}

type workerCollector struct {
	worker   *worker.Worker
	families map[string]family
	handlers *prometheus.HistogramVec
}

// Describe implements prometheus.Collector.
func (c *workerCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.families {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *workerCollector) Collect(ch chan<- prometheus.Metric) {
	n, out := c.worker.Stats(), newSamples(c.families)
	out.add("worker_slots", float64(n.Slots))
	out.add("worker_running", float64(n.Running))
	out.add("worker_stray", float64(n.Stray))
	out.add("worker_attempts_started_total", float64(n.Started))
	for outcome, count := range map[string]int64{"completed": n.Completed, "failed": n.Failed, "released": n.Released, "suspended": n.Suspended,
		"refused": n.Refused, "dropped": n.Dropped, "stopped": n.Stopped, "unknown": n.Unknown, "diverged": n.Diverged} {
		out.add("worker_outcomes_total", float64(count), outcome)
	}
	out.send(ch)
	c.handlers.Collect(ch)
}

// measure is the middleware that measures handlers, including those that panic.
func (c *workerCollector) measure(next worker.Handler) worker.Handler {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		start := time.Now()
		defer func() {
			job := worker.Info(ctx)
			observe(ctx, c.handlers.WithLabelValues(clean(job.Queue), clean(job.Kind)), time.Since(start), job.ID)
		}()
		return next(ctx, payload)
	}
}

// newHistogram returns a histogram that this process fills. Scrapers that understand native
// histograms get one.
func newHistogram(prefix, namespace string, f family) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + f.Name, Help: f.Help, ConstLabels: prometheus.Labels{"namespace": clean(namespace)}, Buckets: f.Buckets(),
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}, f.Labels)
}

// observe adds a value to a histogram. If ctx has a trace that is sampled, the value is an exemplar.
func observe(ctx context.Context, h prometheus.Observer, took time.Duration, task string) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsSampled() {
		h.Observe(took.Seconds())
		return
	}
	labels := prometheus.Labels{"trace_id": span.TraceID().String()}
	if n := prometheus.ExemplarMaxRunes - len("trace_id") - len(labels["trace_id"]) - len("task_id"); task != "" && len(task) <= n && utf8.ValidString(task) {
		labels["task_id"] = task
	}
	h.(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), labels)
}
