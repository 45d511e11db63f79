package deploy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/metrics"
)

// metricName finds the names of Curfew's metrics in an expression.
var metricName = regexp.MustCompile(`\b` + metrics.DefaultPrefix + `\w+`)

// once takes each series of a metric once, however many exporters have it. All exporters have the same values, so a sum over them
// would count each task several times. What is inside must be right for the series of one exporter: a gauge, or the rate of
// a counter.
func once(inside string) string {
	name := metricName.FindString(inside)
	m, found := find(name)
	if !found || m.Source != metrics.FromNamespace {
		panic(fmt.Sprintf("deploy: %q is no metric that all exporters have", name))
	}
	labels := append([]string{"namespace"}, m.Labels...)
	if m.Type == metrics.Histogram {
		labels = append([]string{"namespace", "le"}, m.Labels...)
	}
	return fmt.Sprintf("max by (%s) (%s)", strings.Join(labels, ", "), inside)
}

// find returns the row of a name in the table. The name has the default prefix, and can be that of a series of a histogram. The name of a
// histogram itself is that of its native buckets, which those that are read from Redis do not have.
func find(name string) (metrics.Metric, bool) {
	name = strings.TrimPrefix(name, metrics.DefaultPrefix)
	all := metrics.All()
	at := slices.IndexFunc(all, func(m metrics.Metric) bool {
		if m.Type != metrics.Histogram {
			return m.Name == name
		}
		if m.Name == name {
			return m.Source != metrics.FromNamespace
		}
		return slices.Contains([]string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}, name)
	})
	if at < 0 {
		return metrics.Metric{}, false
	}
	return all[at], true
}

// perSecond is the rate of a counter, summed by some labels.
func perSecond(labels, selector, span string) string {
	return fmt.Sprintf("sum by (namespace%s) (%s)", labels, once("rate("+selector+span+")"))
}

// quantile is a quantile of a histogram, by some labels.
func quantile(q, labels, name, span string) string {
	return fmt.Sprintf("histogram_quantile(%s, %s)", q, perSecond(", le"+labels, metrics.DefaultPrefix+name+"_bucket", span))
}
