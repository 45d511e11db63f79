package metrics

import (
	"math"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/inspect"
)

// family is a metric of the table, as one collector exports it.
type family struct {
	Metric
	desc *prometheus.Desc
}

// families returns the metrics of a source, by name.
func families(prefix, namespace string, from Source) map[string]family {
	all := map[string]family{}
	for _, m := range table {
		if m.Source == from {
			all[m.Name] = family{m, prometheus.NewDesc(prefix+m.Name, m.Help, m.Labels, prometheus.Labels{"namespace": clean(namespace)})}
		}
	}
	return all
}

// clean returns a label that Prometheus accepts. Names that Curfew gave are valid UTF-8, but a damaged record may have others.
func clean(label string) string { return strings.ToValidUTF8(label, "\uFFFD") }

// samples adds up the values of the time series of one scrape. Values with the same labels are added, since several
// kinds and queues have the label Other.
type samples struct {
	families map[string]family
	values   map[string]*sample
}

type sample struct {
	family
	labels    []string
	value     float64
	histogram inspect.Histogram
}

func newSamples(families map[string]family) *samples {
	return &samples{families, map[string]*sample{}}
}

// of returns the sample of a time series.
func (s *samples) of(name string, labels []string) *sample {
	for i := range labels {
		labels[i] = clean(labels[i])
	}
	key := name + "\x00" + strings.Join(labels, "\x00")
	if s.values[key] == nil {
		s.values[key] = &sample{family: s.families[name], labels: labels}
	}
	return s.values[key]
}

// add adds to a counter or gauge.
func (s *samples) add(name string, value float64, labels ...string) {
	s.of(name, labels).value += value
}

// flag sets a gauge to 1 or 0.
func (s *samples) flag(name string, on bool, labels ...string) {
	if s.of(name, labels).value = 0; on {
		s.of(name, labels).value = 1
	}
}

// merge adds to a histogram. An empty one has no time series.
func (s *samples) merge(name string, h inspect.Histogram, labels ...string) {
	if h.Count() > 0 {
		s.join(name, h, labels...)
	}
}

// join is merge for a histogram that can be empty.
func (s *samples) join(name string, h inspect.Histogram, labels ...string) {
	if one := s.of(name, labels); one.histogram.Counts == nil {
		one.histogram = h
	} else {
		one.histogram = one.histogram.Plus(h)
	}
}

// send sends all samples.
func (s *samples) send(ch chan<- prometheus.Metric) {
	for _, one := range s.values {
		var m prometheus.Metric
		var err error
		switch one.Type {
		case Counter:
			m, err = prometheus.NewConstMetric(one.desc, prometheus.CounterValue, one.value, one.labels...)
		case Gauge:
			m, err = prometheus.NewConstMetric(one.desc, prometheus.GaugeValue, one.value, one.labels...)
		case Histogram:
			m, err = constHistogram(one)
		}
		if err != nil {
			m = prometheus.NewInvalidMetric(one.desc, err)
		}
		ch <- m
	}
}

// constHistogram returns a histogram with the buckets of Prometheus, which include those below.
func constHistogram(of *sample) (prometheus.Metric, error) {
	var sum uint64
	buckets := map[float64]uint64{}
	h := of.histogram
	for i, bound := range h.Buckets {
		sum += uint64(max(h.Counts[i], 0))
		buckets[bound] = sum
	}
	sum += uint64(max(h.Counts[len(h.Buckets)], 0))
	// Redis adds whole thousandths. Rounding removes what floating point adds, so that all exporters have the same sum.
	return prometheus.NewConstHistogram(of.desc, sum, math.Round(h.Sum*1000)/1000, buckets, of.labels...)
}
