package metrics

import "slices"

// DefaultPrefix is the prefix of all names unless another is configured.
const DefaultPrefix = "curfew_"

// Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Source is the collector that exports a metric.
type Source string

// The sources of metrics. The metrics of FromNamespace are read from Redis, and are the same in all
// exporters.
const (
	FromNamespace Source = "namespace"
	FromWorker    Source = "worker"
	FromProcess   Source = "process"
)

// Metric is a row of the table of all metrics.
type Metric struct {
	Name   string // without the prefix
	Type   Type
	Source Source
	Labels []string // besides namespace, which all have
	Help   string   // one sentence without a full stop
}

// All returns the table of all metrics, from which the reference, the dashboard and the alerts are
// made.
func All() []Metric { return slices.Clone(table) }

var table = []Metric{
	{"up", Gauge, FromNamespace, nil, "1 if the last read of Redis was complete, 0 if Redis or a part of its keys could not be read; what could not be read is left out"},
	{"scrape_duration_seconds", Gauge, FromNamespace, nil, "How long the last read of Redis took"},
	{"totals_read_timestamp_seconds", Gauge, FromNamespace, nil, "When the exporter began to read the totals that it exports; if they take longer than a scrape may, they are read in the background"},
	{"pairs_folded", Gauge, FromNamespace, nil, "Pairs of a queue and a kind that are counted under the queue or kind -, because there are more of them than labels"},
	{"tasks_enqueued_total", Counter, FromNamespace, []string{"queue", "kind", "source", "when"}, "Tasks that were created, by who created them (client, agent, hook, retry) and by when they can start (now, later)"},
	{"tasks_finished_total", Counter, FromNamespace, []string{"queue", "kind", "status", "reason"}, "Tasks that ended"},
	{"task_timeouts_total", Counter, FromNamespace, []string{"queue", "kind", "type", "policy"}, "Tasks that timed out, by the limit that passed (execution, queue, attempt, workflow) and the policy that applied"},
	{"task_duration_seconds", Histogram, FromNamespace, []string{"queue", "kind", "timeout"}, "How long the last attempt of an ended task ran; timeout is true if the task timed out"},
	{"task_wait_seconds", Histogram, FromNamespace, []string{"queue"}, "How long tasks were in line before their last attempt"},
	{"task_time_used_ratio", Histogram, FromNamespace, []string{"queue", "kind"}, "Part of the time until its deadline that a task had used when it ended"},
	{"timeout_detection_lag_seconds", Histogram, FromNamespace, []string{"queue", "type"}, "How long after its instant a timeout was written, by the limit that passed (execution, queue, attempt, workflow, synchronization); attempt includes attempts that were followed by another one, and synchronization are waits of agents"},
	{"attempt_timeouts_total", Counter, FromNamespace, []string{"queue", "kind"}, "Attempts that took too long and were followed by another attempt"},
	{"wait_timeouts_total", Counter, FromNamespace, []string{"queue", "kind", "policy"}, "Waits of agents that reached their limit, by the queue and kind of the agent and the policy that applied (fail, proceed_with_available)"},
	{"late_completions_total", Counter, FromNamespace, []string{"queue"}, "Outcomes that a worker reported after the task had timed out"},
	{"flow_runs_enqueued_total", Counter, FromNamespace, []string{"flow"}, "Runs of flows that were created, also by a node of another run"},
	{"flow_runs_finished_total", Counter, FromNamespace, []string{"flow", "phase"}, "Runs of flows that ended, by the phase of their task: Succeeded, Failed, Error, Timeout, Cancelled"},
	{"flow_nodes_finished_total", Counter, FromNamespace, []string{"flow", "node", "phase"}, "Tasks of nodes that ended, by the phase of the task; a node that is repeated counts each time, one that never ran or needs no task counts nothing, and a called run that is out of time counts as Timeout whatever its on_timeout is"},
	{"flow_node_timeouts_total", Counter, FromNamespace, []string{"flow", "node", "type"}, "Timeouts of nodes, by the limit that passed (execution, queue, attempt, workflow); attempt includes attempts that were followed by another one"},
	{"wait_wakeups_total", Counter, FromNamespace, []string{"mode", "reason"}, "Agents that were woken, by the mode of their wait and the reason of its end"},
	{"wait_wake_lag_seconds", Histogram, FromNamespace, []string{"mode", "reason"}, "How long after the instant that decided a wait its agent was put in line"},
	{"waits_open", Gauge, FromNamespace, []string{"mode"}, "Agents that wait"},
	{"waits_unbounded", Gauge, FromNamespace, []string{"mode"}, "Agents whose wait nothing ends but its members: it has no limit, and the agent has no limit of its attempt and no deadline, its own or an owner's"},
	{"tasks", Gauge, FromNamespace, []string{"queue", "status"}, "Tasks that are ready, running or waiting, and failed or cancelled tasks that are still kept (dead)"},
	{"tasks_without_deadline", Gauge, FromNamespace, nil, "Tasks that have not ended and have no deadline of their own; of these, timers complete at their time, children end with their owner, and nothing ends the others"},
	{"tasks_delayed", Gauge, FromNamespace, nil, "Tasks that wait for their start"},
	{"tasks_held", Gauge, FromNamespace, []string{"queue", "reason"}, "Tasks that are held beside the line: no live worker has a handler for their kind (unhandled), or a program that can replay the agent (diverged), or their last worker died, perhaps because of them (suspect)"},
	{"queue_paused", Gauge, FromNamespace, []string{"queue"}, "1 if the queue is paused"},
	{"queue_max_length", Gauge, FromNamespace, []string{"queue"}, "How many tasks can be in line before new ones are refused; no value of a queue without this limit"},
	{"tasks_refused_total", Counter, FromNamespace, []string{"queue"}, "New tasks that were refused because the queue had its maximum length; a repeat of a call counts again"},
	{"queue_workers", Gauge, FromNamespace, []string{"queue"}, "Live workers that take tasks from the queue; no value of a queue without known workers while a worker lives that does not report its queues"},
	{"workers", Gauge, FromNamespace, []string{"state"}, "Workers by state"},
	{"deadlines", Gauge, FromNamespace, nil, "Tasks that have not ended and have a deadline"},
	{"deadlines_overdue", Gauge, FromNamespace, []string{"queue"}, "Tasks whose deadline has passed and whose end is not written yet"},
	{"deadlines_due", Gauge, FromNamespace, []string{"within"}, "Deadlines that pass within 10s, 60s or 600s"},
	{"oldest_pending_timestamp_seconds", Gauge, FromNamespace, []string{"queue"}, "Since when the oldest task in line can be fetched"},
	{"last_sweep_timestamp_seconds", Gauge, FromNamespace, nil, "When a reaper last swept the partition that was swept longest ago"},
	{"broken_records", Gauge, FromNamespace, nil, "Damaged records that were put aside"},
	{"redis_info", Gauge, FromNamespace, []string{"version", "mode", "policy"}, "Always 1; the version, mode and eviction policy of Redis; no value if Redis refuses INFO"},
	{"worker_slots", Gauge, FromWorker, nil, "Handlers that can run at the same time"},
	{"worker_running", Gauge, FromWorker, nil, "Handlers that run"},
	{"worker_stray", Gauge, FromWorker, nil, "Handlers that still run although their task has ended"},
	{"worker_attempts_started_total", Counter, FromWorker, nil, "Attempts whose handler was called"},
	{"worker_outcomes_total", Counter, FromWorker, []string{"outcome"}, "Outcomes of attempts: completed, failed, released, suspended, refused, dropped, stopped, unknown (no handler for the kind), diverged (the code of the agent has changed)"},
	{"worker_handler_seconds", Histogram, FromWorker, []string{"queue", "kind"}, "How long handlers ran, with trace ids as exemplars"},
	{"reaper_batches_total", Counter, FromProcess, nil, "Sweeps of the reapers of this process"},
	{"reaper_batch_full_total", Counter, FromProcess, nil, "Sweeps that did as much as one sweep may"},
	{"script_duration_seconds", Histogram, FromProcess, []string{"script"}, "How long calls of this process took, with repeats"},
	{"script_errors_total", Counter, FromProcess, []string{"script", "code"}, "Calls of this process that failed"},
	{"clock_offset_seconds", Gauge, FromProcess, nil, "Clock of this process minus clock of Redis"},
	{"build_info", Gauge, FromProcess, []string{"version", "go_version"}, "Always 1; the version of this program"},
}
