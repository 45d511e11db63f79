package metrics

import (
	"math"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/inspect"
)

// family is a metric of the table with its description for Prometheus.
type family struct {
	Metric
	desc *prometheus.Desc
}

// families returns the metrics of a source, by name.
func families(prefix, namespace string, from Source) map[string]family {
	byName := map[string]family{}
	for _, m := range table {
		if m.Source == from {
			byName[m.Name] = family{m, prometheus.NewDesc(prefix+m.Name, m.Help, m.Labels, prometheus.Labels{"namespace": clean(namespace)})}
		}
	}
	return byName
}

// clean makes a label valid for Prometheus. Names that Curfew accepted are valid UTF-8, but a
// damaged record may contain others.
func clean(label string) string { return strings.ToValidUTF8(label, "\uFFFD") }

// samples sums the values of the time series of one scrape. Values with the same labels are added,
// because several kinds and queues can have the label Other.
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

// sample returns the sample of a time series.
func (s *samples) sample(name string, labels []string) *sample {
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
	s.sample(name, labels).value += value
}

// flag sets a gauge to 1 or 0.
func (s *samples) flag(name string, on bool, labels ...string) {
	if s.sample(name, labels).value = 0; on {
		s.sample(name, labels).value = 1
	}
}

// merge adds to a histogram. An empty histogram has no time series.
func (s *samples) merge(name string, h inspect.Histogram, labels ...string) {
	if h.Count() > 0 {
		s.join(name, h, labels...)
	}
}

// join is merge for a histogram whose time series must exist even if it is empty.
func (s *samples) join(name string, h inspect.Histogram, labels ...string) {
	if total := s.sample(name, labels); total.histogram.Counts == nil {
		total.histogram = h
	} else {
		total.histogram = total.histogram.Plus(h)
	}
}

// send sends all samples.
func (s *samples) send(ch chan<- prometheus.Metric) {
	for _, sample := range s.values {
		var m prometheus.Metric
		var err error
		switch sample.Type {
		case Counter:
			m, err = prometheus.NewConstMetric(sample.desc, prometheus.CounterValue, sample.value, sample.labels...)
		case Gauge:
			m, err = prometheus.NewConstMetric(sample.desc, prometheus.GaugeValue, sample.value, sample.labels...)
		case Histogram:
			m, err = constHistogram(sample)
		}
		if err != nil {
			m = prometheus.NewInvalidMetric(sample.desc, err)
		}
		ch <- m
	}
}

// constHistogram returns a histogram in Prometheus' form, in which the count of a bucket includes
// all lower buckets.
func constHistogram(s *sample) (prometheus.Metric, error) {
	var sum uint64
	buckets := map[float64]uint64{}
	h := s.histogram
	for i, bound := range h.Buckets {
		sum += uint64(max(h.Counts[i], 0))
		buckets[bound] = sum
	}
	sum += uint64(max(h.Counts[len(h.Buckets)], 0))
	// Redis adds whole thousandths. Rounding removes floating-point errors, so that all exporters
	// return the same sum.
	return prometheus.NewConstHistogram(s.desc, sum, math.Round(h.Sum*1000)/1000, buckets, s.labels...)
}
