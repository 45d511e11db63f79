package reference

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/metrics"
)

// metricsIntro is the introduction of the page about metrics, before its tables.
const metricsIntro = `# Metrics

` + "`make docs`" + ` writes this page from the table in package metrics. [How to scrape](../how-to/scrape.md) says how to get them.

Each name has a prefix, which is ` + "`curfew_`" + ` unless another is configured. Each metric has the label ` + "`namespace`" + ` beside its own.
Durations are in seconds, and instants are Unix times in seconds. No label has the id of a task, a worker or an agent.

`

// sources are the headings of the tables.
var sources = []struct {
	from       metrics.Source
	title, say string
}{
	{metrics.FromNamespace, "Of a namespace", `All exporters of a namespace read these values from Redis, so they have the same values: **take the max over
exporters, and never the sum**.

    sum by (namespace, queue) (max without (instance, job) (rate(curfew_task_timeouts_total[5m])))

Counters and histograms are exact. The call that changes a task counts the change in the same transaction, so a change counts once
however many reapers and exporters there are, and a process that dies takes no count with it. They start when the namespace is created. A
namespace whose figures are off has none of them. Labels with the value ` + "`unknown`" + ` are for what an older version counted without them.

Gauges are read one after the other, so they are not a snapshot. ` + "`deadlines_overdue`" + ` has the queues of the first 1,000 overdue
tasks; the other tasks have the queue ` + "`-`" + `.

If Redis cannot be read in time, ` + "`up`" + ` is 0, and no other value is exported except the duration of the read. If only some keys cannot be
read, ` + "`up`" + ` is 0 and all other values are exported.

The labels ` + "`queue`" + ` and ` + "`kind`" + ` are bounded. By default the 500 queues and the 200 kinds with the most tasks have labels of their own,
and the 1,000 pairs of a queue and a kind with the most tasks have time series of their own. All others have the queue or kind ` + "`-`" + `,
which is no name, so sums stay exact. The choice compares the number of binary digits of the counts, and then the names. So all
exporters make the same choice, and a name loses its label only when another one has twice as many tasks, or as many digits and an
earlier name. At that instant ` + "`-`" + ` can become smaller, which Prometheus takes for a restart of that counter.

A partition counts its first 1,000 kinds separately; the others have the kind ` + "`-`" + `, too. ` + "`queue_paused`, `queue_workers` and\n`oldest_pending_timestamp_seconds`" + ` have no queue ` + "`-`" + `, since their values cannot be added.

Prometheus takes the first value of a time series as its beginning, and not as an increase. So what usually happens is exported as 0 before
it happens the first time: for each queue and kind of which a task was created, and for the first 200 pairs of a queue and a kind that live
workers report and that have no task yet. These are the tasks that a client creates to start now, the ends with COMPLETED, with FAILED and
the reason error, failed or timeout, and with CANCELLED and the reason cancelled; the timeouts of all types with the policy fail, and of the
type execution with cancel_all; attempts that took too long, late outcomes, agents that were woken, and the detection lag of the type
execution. All other ends, and the other histograms, begin with their first value.
`},
	{metrics.FromWorker, "Of a worker", "A worker exports these about itself. Add them up over processes.\n"},
	{metrics.FromProcess, "Of a process", `A process exports these about its own calls. Add up the counters over processes. The word ` + "`code`" + ` is the kind of the error, such as
` + "`unavailable`, `full`, `no_right` or `cancelled`" + `.
`},
}

// metricsPage returns the reference of all metrics.
func metricsPage() string {
	var b strings.Builder
	b.WriteString(metricsIntro)
	for i, source := range sources {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "## %s\n\n%s\n| Name | Type | Labels | Meaning |\n|---|---|---|---|\n", source.title, source.say)
		for _, m := range metrics.All() {
			if m.Source == source.from {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, codeList(m.Labels), m.Help)
			}
		}
	}
	b.WriteString("\n## Buckets\n\nThe histograms of a worker and a process have native buckets, too, for scrapers that understand them.\n\n| Name | Upper bounds |\n|---|---|\n")
	for _, m := range metrics.All() {
		if m.Type != metrics.Histogram {
			continue
		}
		var bounds []string
		for _, bound := range m.Buckets() {
			bounds = append(bounds, strconv.FormatFloat(bound, 'f', -1, 64))
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", m.Name, strings.Join(bounds, " "))
	}
	return b.String()
}

func codeList(words []string) string {
	var list []string
	for _, word := range words {
		list = append(list, "`"+word+"`")
	}
	return strings.Join(list, ", ")
}
