package deploy

import "strings"

// A row of the dashboard, with its panels from left to right.
type row struct {
	title  string
	panels []panel
}

type panel struct {
	kind  string // timeseries, stat, heatmap or table
	title string
	about string // what the reader should see in it
	unit  string // as Grafana names it
	width int    // of 24
	lines []line
}

// line is an expression and the legend of its series. board adds the namespace to each metric of the expression.
type line struct{ expression, legend string }

const perScreen = "[$__rate_interval]"

// rate is a counter a second, by some labels.
func rate(name string, labels ...string) string {
	by := ""
	for _, label := range labels {
		by += ", " + label
	}
	return perSecond(by, "curfew_"+name, perScreen)
}

// highest is the quantiles 0.5 and 0.99 of a histogram, by one label.
func highest(name, label string) []line {
	return []line{
		{quantile("0.5", ", "+label, name, perScreen), "p50 {{" + label + "}}"},
		{quantile("0.99", ", "+label, name, perScreen), "p99 {{" + label + "}}"},
	}
}

// here is a counter a second of each process that only that process knows, by more labels.
func here(name string, labels ...string) string {
	by := strings.Join(append([]string{"instance"}, labels...), ", ")
	return "sum by (namespace, " + by + ") (rate(curfew_" + name + perScreen + "))"
}

// slowest is the quantile 0.99 over all processes of a histogram that processes observe, by some labels. Such a histogram has classic and
// native buckets. A Prometheus that stores the native ones drops the classic ones, unless its configuration says otherwise.
func slowest(name string, labels ...string) string {
	of := func(more, series string) string {
		by := "namespace" + more + ", " + strings.Join(labels, ", ")
		return "histogram_quantile(0.99, sum by (" + by + ") (rate(curfew_" + series + perScreen + ")))"
	}
	return of(", le", name+"_bucket") + " or " + of("", name)
}

// one is a panel with one expression.
func one(title, about, unit string, width int, expression, legend string) panel {
	return panel{"timeseries", title, about, unit, width, []line{{expression, legend}}}
}

var rows = []row{
	{"Deadlines", []panel{
		{"stat", "Overdue", "Tasks past their deadline that have not ended: 0 while a reaper works.", "short", 4,
			[]line{{"sum by (namespace) (" + once("curfew_deadlines_overdue") + ")", "overdue"}}},
		{"stat", "With a deadline", "Tasks that have not ended and have a deadline.", "short", 4, []line{{once("curfew_deadlines"), "deadlines"}}},
		one("Overdue by queue", "Which queue is late.", "short", 8, once("curfew_deadlines_overdue"), "{{queue}}"),
		one("Deadlines to come", "A step upwards is a stampede: many deadlines at the same time.", "short", 8, once("curfew_deadlines_due"), "within {{within}}"),
		one("Timeouts by limit", "Which limit passed.", "ops", 8, rate("task_timeouts_total", "type"), "{{type}}"),
		one("Timeouts by kind and policy", "Which kinds need another limit.", "ops", 8, rate("task_timeouts_total", "queue", "kind", "policy"), "{{queue}} {{kind}} {{policy}}"),
		one("Part of tasks that time out", "The alert fires above 5 %.", "percentunit", 8,
			rate("task_timeouts_total", "queue", "kind")+" / "+rate("tasks_finished_total", "queue", "kind"), "{{queue}} {{kind}}"),
		{"timeseries", "Used part of the time", "Near 1: most tasks end shortly before their deadline, so the limit is short.", "percentunit", 8, highest("task_time_used_ratio", "kind")},
		one("Attempts that took too long", "Each was followed by another attempt.", "ops", 8, rate("attempt_timeouts_total", "queue", "kind"), "{{queue}} {{kind}}"),
		one("Waits that timed out", "Waits of agents that reached their limit.", "ops", 8, rate("wait_timeouts_total", "queue", "kind", "policy"), "{{queue}} {{kind}} {{policy}}"),
		one("Late outcomes", "A worker reported an outcome after the task had timed out.", "ops", 8, rate("late_completions_total", "queue"), "{{queue}}"),
	}},
	{"Detection lag", []panel{
		{"heatmap", "How late timeouts are written", "Timeouts by the time from their instant until a call wrote them.", "s", 16,
			[]line{{"sum by (namespace, le) (" + once("increase(curfew_timeout_detection_lag_seconds_bucket"+perScreen+")") + ")", "{{le}}"}}},
		{"timeseries", "Lag by limit", "Without alarms a reaper looks twice a second: up to 500 ms is normal.", "s", 8, highest("timeout_detection_lag_seconds", "type")},
	}},
	{"Queues", []panel{
		one("Tasks", "Tasks by queue and state.", "short", 8, once("curfew_tasks"), "{{queue}} {{status}}"),
		one("Age of the oldest task in line", "How long it has been ready.", "s", 8, "time() - "+once("curfew_oldest_pending_timestamp_seconds"), "{{queue}}"),
		one("Delayed tasks", "Tasks that wait for their start.", "short", 8, once("curfew_tasks_delayed"), "delayed"),
		one("Created", "By queue, by who created them, and by when they can start.", "ops", 8, rate("tasks_enqueued_total", "queue", "source", "when"), "{{queue}} {{source}} {{when}}"),
		one("Ended", "By queue, status and reason.", "ops", 8, rate("tasks_finished_total", "queue", "status", "reason"), "{{queue}} {{status}} {{reason}}"),
		{"timeseries", "Time in line", "Before the last attempt.", "s", 8, highest("task_wait_seconds", "queue")},
		{"timeseries", "Time of the last attempt", "By kind.", "s", 8, highest("task_duration_seconds", "kind")},
		one("Workers by queue", "Live workers that take tasks from the queue.", "short", 8, once("curfew_queue_workers"), "{{queue}}"),
		one("Workers by state", "Of the namespace.", "short", 4, once("curfew_workers"), "{{state}}"),
		one("Paused", "1 if the queue is paused.", "short", 4, once("curfew_queue_paused"), "{{queue}}"),
		{"timeseries", "Slots", "Handlers that can run, that run, and that still run although their task has ended.", "short", 8, []line{
			{"sum by (namespace, instance) (curfew_worker_slots)", "{{instance}} slots"},
			{"sum by (namespace, instance) (curfew_worker_running)", "{{instance}} running"},
			{"sum by (namespace, instance) (curfew_worker_stray)", "{{instance}} stray"}}},
		{"timeseries", "Attempts", "Started, and their outcomes.", "ops", 8, []line{
			{here("worker_attempts_started_total"), "{{instance}} started"}, {here("worker_outcomes_total", "outcome"), "{{instance}} {{outcome}}"}}},
		one("Time of handlers", "p99 by kind, as the worker measured it.", "s", 8, slowest("worker_handler_seconds", "queue", "kind"), "{{queue}} {{kind}}"),
	}},
	{"Agents", []panel{
		one("Agents that wait", "By the mode of their wait.", "short", 6, once("curfew_waits_open"), "{{mode}}"),
		one("Waits without a limit", "Neither the wait nor the agent has a limit.", "short", 6, once("curfew_waits_unbounded"), "{{mode}}"),
		one("Agents woken", "By mode and reason.", "ops", 6, rate("wait_wakeups_total", "mode", "reason"), "{{mode}} {{reason}}"),
		{"timeseries", "Lag of wakes", "From the instant that decided the wait until the agent was in line.", "s", 6, highest("wait_wake_lag_seconds", "reason")},
	}},
	{"Flows", []panel{
		one("Runs begun", "By definition.", "ops", 6, rate("flow_runs_enqueued_total", "flow"), "{{flow}}"),
		one("Runs ended", "By definition and phase.", "ops", 6, rate("flow_runs_finished_total", "flow", "phase"), "{{flow}} {{phase}}"),
		one("Nodes ended", "By definition, node and phase.", "ops", 6, rate("flow_nodes_finished_total", "flow", "node", "phase"), "{{flow}} {{node}} {{phase}}"),
		one("Timeouts of nodes", "By definition, node and limit.", "ops", 6, rate("flow_node_timeouts_total", "flow", "node", "type"), "{{flow}} {{node}} {{type}}"),
	}},
	{"Reapers", []panel{
		one("Time since the last sweep", "Of the partition that was swept longest ago. The alert fires above 30 s.", "s", 6, "time() - ("+once("curfew_last_sweep_timestamp_seconds")+" > 0)", "{{namespace}}"),
		one("Sweeps", "By process.", "ops", 6, here("reaper_batches_total"), "{{instance}}"),
		one("Full sweeps", "Sweeps that did as much as one sweep may: more is due than one can do.", "ops", 6, here("reaper_batch_full_total"), "{{instance}}"),
		one("Damaged records", "Records that were put aside.", "short", 6, once("curfew_broken_records"), "{{namespace}}"),
	}},
	{"Redis", []panel{
		{"stat", "Exporters read Redis", "1 if at least one does.", "short", 4, []line{{once("curfew_up"), "up"}}},
		{"table", "Redis", "Version, mode and eviction policy.", "short", 8, []line{{once("curfew_redis_info"), ""}}},
		one("Time of a read", "How long an exporter takes to read the namespace.", "s", 12, once("curfew_scrape_duration_seconds"), "slowest"),
		one("Age of the totals", "More than a minute: exporters read the totals in the background, since there are many queues and kinds.", "s", 8,
			"time() - ("+once("curfew_totals_read_timestamp_seconds")+" > 0)", "{{namespace}}"),
		one("Folded pairs", "Pairs of a queue and a kind that share the label -.", "short", 4, once("curfew_pairs_folded"), "{{namespace}}"),
		one("Time of calls", "p99 by script, with repeats.", "s", 8, slowest("script_duration_seconds", "script"), "{{script}}"),
		one("Failed calls", "By script and code.", "ops", 8, "sum by (namespace, script, code) (rate(curfew_script_errors_total"+perScreen+"))", "{{script}} {{code}}"),
		one("Clock offset", "Clock of the process minus clock of Redis. The alert fires above 250 ms.", "s", 8, "max by (namespace, instance) (curfew_clock_offset_seconds)", "{{instance}}"),
	}},
}
