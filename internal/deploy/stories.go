package deploy

// A story of an alert is series of samples, one a minute, and what the alert does at some minutes. promtool plays it.
type story struct {
	alert  string
	claim  string
	series []series
	looks  []look
}

// series is the samples of one series in the notation of promtool: 5+0x9 is ten times 5, 0+60x9 is 0, 60 … 540.
type series struct{ name, samples string }

// look says what the alert does at a minute: nothing, or it fires with labels and a value.
type look struct {
	minute int
	labels map[string]string // nil: it does not fire
	value  string            // as the description shows it
}

func silent(minute int) look { return look{minute: minute} }

func fires(minute int, value string, labels ...string) look {
	l := look{minute: minute, value: value, labels: map[string]string{}}
	for i := 0; i+1 < len(labels); i += 2 {
		l.labels[labels[i]] = labels[i+1]
	}
	return l
}

// Two exporters of one namespace, a and b, have the same values. Each alert has a story in which it fires and stops.
var stories = []story{
	{"CurfewDown", "no exporter reads Redis for some minutes",
		[]series{
			{`curfew_up{namespace="shop",instance="a"}`, "1+0x4 0+0x9 1+0x9"},
			{`curfew_up{namespace="shop",instance="b"}`, "1+0x4 0+0x9 1+0x9"},
		},
		[]look{silent(4), fires(10, "0", "namespace", "shop"), silent(16)}},
	{"CurfewDown", "one of two exporters reads Redis",
		[]series{{`curfew_up{namespace="shop",instance="a"}`, "0+0x20"}, {`curfew_up{namespace="shop",instance="b"}`, "1+0x20"}},
		[]look{silent(10)}},
	{"CurfewDown", "one namespace of two is exported no more, and then again",
		[]series{{`curfew_up{namespace="shop",instance="a"}`, "1+0x4 stale _x9 1+0x9"}, {`curfew_up{namespace="mail",instance="a"}`, "1+0x24"}},
		[]look{silent(5), fires(10, "0", "namespace", "shop"), silent(17)}},
	{"CurfewDown", "the only exporter is gone, for more than an hour",
		[]series{{`curfew_up{namespace="shop",instance="a"}`, "1+0x4 stale _x100"}},
		[]look{silent(5), fires(30, "0", "namespace", "shop"), fires(80, "0")}},
	{"CurfewDown", "one of two exporters does not export the namespace any more",
		[]series{{`curfew_up{namespace="shop",instance="a"}`, "1+0x4 stale _x20"}, {`curfew_up{namespace="shop",instance="b"}`, "1+0x24"}},
		[]look{silent(10), silent(20)}},
	{"CurfewDown", "the only exporter is replaced by another within a minute",
		[]series{{`curfew_up{namespace="shop",instance="a"}`, "1+0x4 stale _x20"}, {`curfew_up{namespace="shop",instance="b"}`, "_x6 1+0x18"}},
		[]look{silent(5), silent(6), silent(7), silent(20)}},
	{"CurfewDown", "no exporter is scraped",
		[]series{{`up{job="curfew",instance="a"}`, "0+0x20"}},
		[]look{fires(10, "0")}},
	{"CurfewExporterDown", "an exporter is away for some minutes, and another is not",
		[]series{{`up{job="curfew",instance="a"}`, "1+0x4 0+0x9 1+0x9"}, {`up{job="curfew",instance="b"}`, "1+0x24"}},
		[]look{silent(6), fires(10, "0", "job", "curfew", "instance", "a"), silent(16)}},
	{"CurfewExporterDown", "a target of another job is away",
		[]series{{`up{job="node",instance="a"}`, "0+0x20"}}, []look{silent(10)}},
	{"CurfewExporterDown", "a worker is away, which is no exporter of a namespace",
		[]series{{`up{job="curfew-processes",instance="a"}`, "0+0x20"}, {`up{job="curfew",instance="b"}`, "1+0x20"}}, []look{silent(10)}},
	{"CurfewDown", "workers and reapers are scraped, which have no curfew_up",
		[]series{
			{`curfew_up{namespace="shop",instance="a"}`, "1+0x20"},
			{`curfew_worker_slots{namespace="shop",instance="b"}`, "10+0x20"},
			{`curfew_build_info{namespace="shop",version="1.0.0",go_version="go1.26",instance="b"}`, "1+0x20"},
		},
		[]look{silent(10)}},
	{"CurfewNoReaper", "nobody sweeps for ten minutes",
		[]series{
			{`curfew_last_sweep_timestamp_seconds{namespace="shop",instance="a"}`, "0+60x5 300+0x9 960+60x5"},
			{`curfew_last_sweep_timestamp_seconds{namespace="shop",instance="b"}`, "0+60x5 300+0x9 960+60x5"},
		},
		[]look{silent(5), fires(10, "5m 0s", "namespace", "shop"), silent(18)}},
	{"CurfewNoReaper", "an exporter shows an old value, and another a new one",
		[]series{
			{`curfew_last_sweep_timestamp_seconds{namespace="shop",instance="a"}`, "0+0x20"},
			{`curfew_last_sweep_timestamp_seconds{namespace="shop",instance="b"}`, "0+60x20"},
		},
		[]look{silent(10)}},
	{"CurfewNoReaper", "nobody has ever swept",
		[]series{{`curfew_last_sweep_timestamp_seconds{namespace="shop",instance="a"}`, "0+0x20"}},
		[]look{fires(10, "10m 0s", "namespace", "shop")}},
	{"CurfewOverdue", "three deadlines of one queue are overdue for ten minutes",
		[]series{
			{`curfew_deadlines_overdue{namespace="shop",queue="mail",instance="a"}`, "0+0x4 3+0x9 0+0x9"},
			{`curfew_deadlines_overdue{namespace="shop",queue="mail",instance="b"}`, "0+0x4 3+0x9 0+0x9"},
			{`curfew_deadlines_overdue{namespace="shop",queue="video",instance="a"}`, "0+0x24"},
		},
		[]look{silent(5), fires(10, "3", "namespace", "shop", "queue", "mail"), silent(16)}},
	{"CurfewOverdue", "1,000 tasks a second time out, each within milliseconds",
		[]series{
			{`curfew_deadlines_overdue{namespace="shop",queue="mail",instance="a"}`, "20+0x24"},
			{`curfew_task_timeouts_total{namespace="shop",queue="mail",kind="send",type="execution",policy="fail",instance="a"}`, "0+60000x24"},
		},
		[]look{silent(20)}},
	{"CurfewOverdue", "1,000 tasks a second time out, and more are due than are written",
		[]series{
			{`curfew_deadlines_overdue{namespace="shop",queue="mail",instance="a"}`, "20000+0x24"},
			{`curfew_task_timeouts_total{namespace="shop",queue="mail",kind="send",type="execution",policy="fail",instance="a"}`, "0+60000x24"},
		},
		[]look{fires(20, "20000", "namespace", "shop", "queue", "mail")}},
	{"CurfewLagHigh", "timeouts are written within 500 ms, then later, then in time again",
		[]series{
			{`curfew_timeout_detection_lag_seconds_bucket{namespace="shop",queue="mail",type="execution",le="0.5",instance="a"}`, "0+60x10 600+0x29 600+60x20"},
			{`curfew_timeout_detection_lag_seconds_bucket{namespace="shop",queue="mail",type="execution",le="2.5",instance="a"}`, "0+60x60"},
			{`curfew_timeout_detection_lag_seconds_bucket{namespace="shop",queue="mail",type="execution",le="+Inf",instance="a"}`, "0+60x60"},
		},
		[]look{silent(9), fires(30, "2.48s", "namespace", "shop", "queue", "mail"), silent(58)}},
	{"CurfewTimeoutRatio", "one of ten tasks times out for a while",
		[]series{
			{`curfew_tasks_finished_total{namespace="shop",queue="mail",kind="send",status="COMPLETED",reason="",instance="a"}`, "0+54x100"},
			{`curfew_tasks_finished_total{namespace="shop",queue="mail",kind="send",status="FAILED",reason="timeout",instance="a"}`, "0+6x100"},
			{`curfew_task_timeouts_total{namespace="shop",queue="mail",kind="send",type="execution",policy="fail",instance="a"}`, "0+0x20 0+6x29 180+0x50"},
		},
		[]look{silent(20), fires(45, "10%", "namespace", "shop", "queue", "mail", "kind", "send"), silent(70)}},
	{"CurfewTimeoutRatio", "four of 100 tasks time out, and two exporters have the timeouts",
		[]series{
			{`curfew_tasks_finished_total{namespace="shop",queue="mail",kind="send",status="FAILED",reason="timeout",instance="a"}`, "0+100x60"},
			{`curfew_task_timeouts_total{namespace="shop",queue="mail",kind="send",type="execution",policy="fail",instance="a"}`, "0+4x60"},
			{`curfew_task_timeouts_total{namespace="shop",queue="mail",kind="send",type="execution",policy="fail",instance="b"}`, "0+4x60"},
		},
		[]look{silent(45)}},
	{"CurfewTimeoutRatio", "1,000 tasks time out at one instant",
		[]series{
			{`curfew_tasks_finished_total{namespace="shop",queue="mail",kind="send",status="FAILED",reason="timeout",instance="a"}`, "0+0x20 1000+0x40"},
			{`curfew_task_timeouts_total{namespace="shop",queue="mail",kind="send",type="execution",policy="fail",instance="a"}`, "0+0x20 1000+0x40"},
		},
		[]look{silent(20), fires(25, "100%", "namespace", "shop", "queue", "mail", "kind", "send"), silent(40)}},
	{"CurfewTimeoutRatio", "all of a few tasks time out",
		[]series{
			{`curfew_tasks_finished_total{namespace="shop",queue="mail",kind="send",status="FAILED",reason="timeout",instance="a"}`, "0+1x60"},
			{`curfew_task_timeouts_total{namespace="shop",queue="mail",kind="send",type="execution",policy="fail",instance="a"}`, "0+1x60"},
		},
		[]look{silent(45)}},
	{"CurfewStampede", "5,000 deadlines pass at one instant, after an hour of none",
		[]series{{`curfew_deadlines_due{namespace="shop",within="60s",instance="a"}`, "0+0x60 5000 0+0x20"}},
		[]look{silent(59), fires(61, "5000", "namespace", "shop", "within", "60s"), silent(63)}},
	{"CurfewStampede", "5,000 deadlines pass in one minute, after an hour of ten",
		[]series{
			{`curfew_deadlines_due{namespace="shop",within="60s",instance="a"}`, "10+0x60 5000+0x3 10+0x20"},
			{`curfew_deadlines_due{namespace="shop",within="600s",instance="a"}`, "100+0x60 90000+0x3 100+0x20"},
		},
		[]look{silent(60), fires(63, "5000", "namespace", "shop", "within", "60s"), silent(66)}},
	{"CurfewStampede", "a hundred deadlines after an hour of none",
		[]series{{`curfew_deadlines_due{namespace="shop",within="60s",instance="a"}`, "0+0x60 100+0x20"}},
		[]look{silent(63)}},
	{"CurfewStalled", "tasks are ready and workers live, and no task ends for 26 minutes",
		[]series{
			{`curfew_tasks{namespace="shop",queue="mail",status="ready",instance="a"}`, "5+0x50"},
			{`curfew_queue_workers{namespace="shop",queue="mail",instance="a"}`, "2+0x50"},
			{`curfew_queue_paused{namespace="shop",queue="mail",instance="a"}`, "0+0x50"},
			{`curfew_oldest_pending_timestamp_seconds{namespace="shop",queue="mail",instance="a"}`, "0+60x5 300+0x44"},
			{`curfew_tasks_finished_total{namespace="shop",queue="mail",kind="send",status="COMPLETED",reason="",instance="a"}`, "0+10x4 40+0x25 50+10x19"},
		},
		[]look{silent(14), fires(20, "15m 0s", "namespace", "shop", "queue", "mail"), silent(35)}},
	{"CurfewStalled", "the queue is paused",
		[]series{
			{`curfew_tasks{namespace="shop",queue="mail",status="ready",instance="a"}`, "5+0x50"},
			{`curfew_queue_workers{namespace="shop",queue="mail",instance="a"}`, "2+0x50"},
			{`curfew_queue_paused{namespace="shop",queue="mail",instance="a"}`, "1+0x50"},
			{`curfew_oldest_pending_timestamp_seconds{namespace="shop",queue="mail",instance="a"}`, "0+0x50"},
			{`curfew_tasks_finished_total{namespace="shop",queue="mail",kind="send",status="COMPLETED",reason="",instance="a"}`, "40+0x50"},
		},
		[]look{silent(40)}},
	{"CurfewNoWorker", "a queue has tasks and no worker for ten minutes",
		[]series{
			{`curfew_tasks{namespace="shop",queue="mail",status="ready",instance="a"}`, "4+0x24"},
			{`curfew_tasks{namespace="shop",queue="mail",status="ready",instance="b"}`, "4+0x24"},
			{`curfew_tasks{namespace="shop",queue="mail",status="dead",instance="a"}`, "9+0x24"},
			{`curfew_queue_workers{namespace="shop",queue="mail",instance="a"}`, "1+0x4 0+0x9 1+0x9"},
		},
		[]look{silent(6), fires(10, "4", "namespace", "shop", "queue", "mail"), silent(16)}},
	{"CurfewNoWorker", "the queue is paused",
		[]series{
			{`curfew_tasks{namespace="shop",queue="mail",status="ready",instance="a"}`, "4+0x24"},
			{`curfew_queue_workers{namespace="shop",queue="mail",instance="a"}`, "0+0x24"},
			{`curfew_queue_paused{namespace="shop",queue="mail",instance="a"}`, "1+0x24"},
		},
		[]look{silent(10)}},
	{"CurfewNoWorker", "a queue without tasks has no worker",
		[]series{
			{`curfew_tasks{namespace="shop",queue="mail",status="ready",instance="a"}`, "0+0x24"},
			{`curfew_queue_workers{namespace="shop",queue="mail",instance="a"}`, "0+0x24"},
		},
		[]look{silent(10)}},
	{"CurfewNoWorker", "the workers cannot be read",
		[]series{{`curfew_tasks{namespace="shop",queue="mail",status="ready",instance="a"}`, "4+0x24"}},
		[]look{silent(10)}},
	{"CurfewNoWorker", "queues that have no label of their own",
		[]series{{`curfew_tasks{namespace="shop",queue="-",status="ready",instance="a"}`, "4+0x24"}},
		[]look{silent(10)}},
	{"CurfewUnboundedWaits", "two agents wait without a limit",
		[]series{
			{`curfew_waits_unbounded{namespace="shop",mode="all",instance="a"}`, "0+0x4 1+0x24 0+0x9"},
			{`curfew_waits_unbounded{namespace="shop",mode="signal",instance="a"}`, "0+0x4 1+0x24 0+0x9"},
			{`curfew_waits_unbounded{namespace="shop",mode="signal",instance="b"}`, "0+0x4 1+0x24 0+0x9"},
		},
		[]look{silent(15), fires(25, "2", "namespace", "shop"), silent(32)}},
	{"CurfewWorkerStray", "handlers of one worker do not stop",
		[]series{
			{`curfew_worker_stray{namespace="shop",instance="a"}`, "0+0x4 3+0x19 0+0x9"},
			{`curfew_worker_stray{namespace="shop",instance="b"}`, "0+0x34"},
		},
		[]look{silent(10), fires(20, "3", "namespace", "shop", "instance", "a"), silent(26)}},
	{"CurfewBrokenRecords", "a record is damaged, and repaired",
		[]series{{`curfew_broken_records{namespace="shop",instance="a"}`, "0+0x4 1+0x9 0+0x9"}},
		[]look{silent(9), fires(12, "1", "namespace", "shop"), silent(16)}},
	{"CurfewEvictionPolicy", "the eviction policy is wrong, and corrected",
		[]series{
			{`curfew_redis_info{namespace="shop",version="7.2.4",mode="standalone",policy="allkeys-lru",instance="a"}`, "1+0x9 _x15"},
			{`curfew_redis_info{namespace="shop",version="7.2.4",mode="standalone",policy="noeviction",instance="a"}`, "_x10 1+0x15"},
		},
		[]look{silent(4), fires(8, "1", "namespace", "shop", "version", "7.2.4", "mode", "standalone", "policy", "allkeys-lru"), silent(20)}},
	{"CurfewClock", "the clock of one process is late, and set",
		[]series{
			{`curfew_clock_offset_seconds{namespace="shop",instance="a"}`, "0+0x4 -2+0x9 0+0x9"},
			{`curfew_clock_offset_seconds{namespace="shop",instance="b"}`, "0.1+0x24"},
		},
		[]look{silent(9), fires(12, "2s", "namespace", "shop", "instance", "a"), silent(16)}},
}
