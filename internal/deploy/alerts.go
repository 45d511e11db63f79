package deploy

import (
	"strings"
	"time"
)

// Severities of an alert: Page is for what must be cured now, and Ticket for what can wait until tomorrow.
const (
	page   = "page"
	ticket = "ticket"
)

// An alert is a row of the table of alerts.
type alert struct {
	name        string
	severity    string
	condition   string        // PromQL; $after stands for after in seconds
	after       time.Duration // an age that is too high
	lasts       time.Duration // how long the condition holds before the alert fires
	summary     string        // a sentence without a value
	description string        // sentences with the value
}

var alerts = []alert{
	{
		name: "CurfewDown", severity: page, lasts: time.Minute,
		// A namespace that was there in the last hour and is gone has the value 0. If none was there, the alert has no namespace.
		condition: once("curfew_up") + " == 0\nor 0 * (" + once("max_over_time(curfew_up[1h])") + " unless " + once("curfew_up") + ")\n" +
			"or absent_over_time(curfew_up[1h]) - 1",
		summary:     "No exporter of Curfew can read all from Redis",
		description: "The highest curfew_up is {{ $value }}, or no exporter has the namespace any more. Until that is cured, other alerts can miss trouble.",
	},
	{
		name: "CurfewExporterDown", severity: ticket, lasts: 2 * time.Minute,
		condition:   `up{job="curfew"} == 0`,
		summary:     "Prometheus cannot scrape {{ $labels.instance }}",
		description: "up is {{ $value }}: the exporter is gone, or does not answer in time.",
	},
	{
		name: "CurfewNoReaper", severity: page, lasts: time.Minute, after: 30 * time.Second,
		condition:   "time() - " + once("curfew_last_sweep_timestamp_seconds") + " > $after",
		summary:     "No reaper sweeps in {{ $labels.namespace }}",
		description: "A partition was last swept {{ $value | humanizeDuration }} ago, so its deadlines are not kept.",
	},
	{
		name: "CurfewOverdue", severity: page, lasts: time.Minute,
		// Where tasks time out all the time, some are always overdue for a few milliseconds.
		condition: once("curfew_deadlines_overdue") + " > 0\nunless " + once("curfew_deadlines_overdue") + " < 5 * " +
			perSecond(", queue", "curfew_task_timeouts_total", "[5m]"),
		summary:     "Deadlines have passed and are not written in {{ $labels.namespace }}, queue {{ $labels.queue }}",
		description: "{{ $value }} tasks are past their deadline and have not ended.",
	},
	{
		name: "CurfewLagHigh", severity: page, lasts: 2 * time.Minute, after: time.Second,
		condition:   quantile("0.99", ", queue", "timeout_detection_lag_seconds", "[5m]") + " > $after",
		summary:     "Timeouts are noticed late in {{ $labels.namespace }}, queue {{ $labels.queue }}",
		description: "1 of 100 timeouts is written {{ $value | humanizeDuration }} or more after its instant.",
	},
	{
		name: "CurfewTimeoutRatio", severity: ticket, lasts: 2 * time.Minute,
		condition: perSecond(", queue, kind", "curfew_task_timeouts_total", "[10m]") + "\n/ " +
			perSecond(", queue, kind", "curfew_tasks_finished_total", "[10m]") + " > 0.05\nand " +
			perSecond(", queue, kind", "curfew_tasks_finished_total", "[10m]") + " * 600 >= 20",
		summary:     "Many tasks of the kind {{ $labels.kind }} time out in {{ $labels.namespace }}, queue {{ $labels.queue }}",
		description: "{{ $value | humanizePercentage }} of the tasks that ended in the last 10 minutes timed out.",
	},
	{
		// Deadlines at one instant are in the next 60 s for a minute only. So the alert fires at once.
		name: "CurfewStampede", severity: ticket,
		condition: once(`curfew_deadlines_due{within="60s"}`) + "\n> 10 * " + once(`avg_over_time(curfew_deadlines_due{within="60s"}[1h])`) +
			"\nand " + once(`curfew_deadlines_due{within="60s"}`) + " >= 1000",
		summary:     "Many deadlines pass at the same time in {{ $labels.namespace }}",
		description: "{{ $value }} deadlines pass in the next 60 s, more than 10 times the average of the last hour.",
	},
	{
		name: "CurfewStalled", severity: page, lasts: time.Minute, after: 10 * time.Minute,
		condition: "time() - " + once("curfew_oldest_pending_timestamp_seconds") + " > $after\nand " +
			once(`curfew_queue_workers`) + " > 0\nand on (namespace, queue) " + once(`curfew_tasks{status="ready"}`) + " > 0\n" +
			"unless " + perSecond(", queue", "curfew_tasks_finished_total", "[10m]") + " > 0\nunless " + once("curfew_queue_paused") + " == 1",
		summary:     "Workers end no task in {{ $labels.namespace }}, queue {{ $labels.queue }}",
		description: "The oldest task in line has been ready for {{ $value | humanizeDuration }}, workers are live, and no task of the queue ended in 10 minutes.",
	},
	{
		name: "CurfewNoWorker", severity: page, lasts: 2 * time.Minute,
		// The workers of queues without a label of their own are not counted. A queue without a value may have workers.
		condition: "sum by (namespace, queue) (" + once(`curfew_tasks{status="ready",queue!="-"}`) + ") > 0\n" +
			"and " + once("curfew_queue_workers") + " == 0\nunless " + once("curfew_queue_paused") + " == 1",
		summary:     "No worker takes tasks in {{ $labels.namespace }}, queue {{ $labels.queue }}",
		description: "{{ $value }} tasks are ready, and the queue has no live worker.",
	},
	{
		name: "CurfewUnboundedWaits", severity: ticket, lasts: 15 * time.Minute,
		condition:   "sum by (namespace) (" + once("curfew_waits_unbounded") + ") > 0",
		summary:     "Agents wait without any limit in {{ $labels.namespace }}",
		description: "{{ $value }} agents wait without a limit of the wait and without a deadline.",
	},
	{
		name: "CurfewWorkerStray", severity: ticket, lasts: 10 * time.Minute,
		condition:   "max by (namespace, instance) (curfew_worker_stray) > 0",
		summary:     "Handlers of {{ $labels.instance }} do not stop in {{ $labels.namespace }}",
		description: "{{ $value }} handlers still run although their task has ended, and hold slots.",
	},
	{
		name: "CurfewBrokenRecords", severity: ticket, lasts: 5 * time.Minute,
		condition:   once("curfew_broken_records") + " > 0",
		summary:     "Records are damaged in {{ $labels.namespace }}",
		description: "{{ $value }} records were put aside because they cannot be read. Their tasks do not end by themselves.",
	},
	{
		name: "CurfewEvictionPolicy", severity: ticket, lasts: 5 * time.Minute,
		condition:   once(`curfew_redis_info{policy!~"noeviction|unknown|"}`) + " == 1",
		summary:     "Redis may evict tasks of {{ $labels.namespace }}",
		description: "The eviction policy is {{ $labels.policy }} (curfew_redis_info is {{ $value }}): Redis deletes tasks and deadlines when memory is full.",
	},
	{
		name: "CurfewClock", severity: ticket, lasts: 5 * time.Minute,
		condition:   "max by (namespace, instance) (abs(curfew_clock_offset_seconds)) > 0.25",
		summary:     "The clock of {{ $labels.instance }} differs from that of Redis",
		description: "The clocks differ by {{ $value | humanizeDuration }}. Deadlines follow the clock of Redis.",
	},
}

// runbook is the page with a section for each alert.
const runbook = "https://github.com/curfew-dev/curfew/blob/main/docs/how-to/alert.md"

func (a alert) runbookURL() string { return runbook + "#" + strings.ToLower(a.name) }
