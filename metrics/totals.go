package metrics

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// unknown is the value of a label that an older version of Curfew did not count.
const unknown = "unknown"

// addFigures adds the counts since the namespace was created. With short, because the figures of
// some kinds could not be read, it leaves out sums over kinds: Prometheus would take a total that
// shrinks for a restart of the counter.
func (s *samples) addFigures(figures []inspect.KindFigures, labels labelSet, short bool) {
	if len(figures) > 0 && !short {
		s.beginWakeups()
	}
	for _, f := range figures {
		line, kind := labels.pair(f.Queue, f.Kind)
		if !short {
			s.addSums(f, line)
		}
		s.addFlow(f, labels, short)
		if short && kind == Other {
			continue
		}
		s.beginPair(line, kind)
		for _, e := range f.Enqueued {
			when := "now"
			if e.Later {
				when = "later"
			}
			s.add("tasks_enqueued_total", float64(e.Count), line, kind, string(e.Source), when)
		}
		for _, e := range f.Ends {
			s.add("tasks_finished_total", float64(e.Count), line, kind, string(e.Status), string(e.Reason))
			if e.Reason == queue.ReasonTimeout {
				s.add("task_timeouts_total", float64(e.Count), line, kind, cmp.Or(string(e.TimeoutType), unknown), cmp.Or(e.Policy, unknown))
			}
		}
		s.merge("task_duration_seconds", f.Timed, line, kind, "true")
		s.merge("task_duration_seconds", minus(f.Duration, f.Timed), line, kind, "false")
		s.merge("task_time_used_ratio", f.Share, line, kind)
		for policy, n := range f.WaitTimeouts {
			s.add("wait_timeouts_total", float64(n), line, kind, policy)
		}
		s.add("attempt_timeouts_total", float64(f.AttemptTimeouts), line, kind)
	}
}

// addSums adds the figures of a kind and queue to the metrics without a label for the kind.
func (s *samples) addSums(f inspect.KindFigures, line string) {
	s.beginQueue(line)
	s.merge("task_wait_seconds", f.Waiting, line)
	for kindOfTimeout, lag := range f.LagBy {
		s.merge("timeout_detection_lag_seconds", lag, line, cmp.Or(string(kindOfTimeout), unknown))
	}
	s.add("late_completions_total", float64(f.Late), line)
	for _, w := range f.Wakeups {
		s.add("wait_wakeups_total", float64(w.Lag.Count()), string(w.Mode), w.Reason)
		s.merge("wait_wake_lag_seconds", w.Lag, string(w.Mode), w.Reason)
	}
}

// minus returns a histogram without the values of a part of it.
func minus(h, part inspect.Histogram) inspect.Histogram {
	if part.Counts == nil {
		return h
	}
	less := inspect.Histogram{Buckets: h.Buckets, Counts: slices.Clone(h.Counts), Sum: h.Sum - part.Sum}
	for i, n := range part.Counts {
		less.Counts[i] -= n
	}
	return less
}

// addTasks adds the sizes of queues. A queue without its own label is part of the queue Other,
// except in metrics that cannot be summed.
func (s *samples) addTasks(from *snapshot) {
	for _, o := range from.oldest {
		s.add("oldest_pending_timestamp_seconds", seconds(o.Since), o.Queue)
	}
	if from.stats == nil {
		return
	}
	for _, stats := range from.stats.Queues {
		line := from.labels.queue(stats.Queue)
		s.add("tasks", float64(stats.Ready), line, "ready")
		s.add("tasks", float64(stats.Running), line, "running")
		s.add("tasks", float64(stats.Waiting), line, "waiting")
		s.add("tasks", float64(stats.Dead), line, "dead")
		if stats.MaxLength > 0 || stats.Refused > 0 {
			s.add("tasks_refused_total", float64(stats.Refused), line)
		}
		if from.labels.queues[stats.Queue] {
			s.flag("queue_paused", stats.Paused, line)
			if stats.MaxLength > 0 {
				s.add("queue_max_length", float64(stats.MaxLength), line)
			}
		}
	}
	for _, h := range from.stats.Held {
		s.add("tasks_held", float64(h.Tasks), from.labels.queue(h.Queue), string(h.Reason))
	}
	for _, mode := range modes {
		s.add("waits_open", 0, string(mode))
		s.add("waits_unbounded", 0, string(mode))
	}
	for _, w := range from.stats.OpenWaits {
		s.add("waits_open", float64(w.Count), string(w.Mode))
		s.add("waits_unbounded", float64(w.Unbounded), string(w.Mode))
	}
	s.add("tasks_without_deadline", float64(from.stats.NoDeadline))
	s.add("tasks_delayed", float64(from.stats.Delayed))
	s.add("broken_records", float64(from.stats.Broken))
}

// addDeadlines adds the due deadlines. Only the first overdue tasks were read with their queues; the
// rest has the queue Other.
func (s *samples) addDeadlines(from *snapshot) {
	if from.stats != nil {
		s.add("deadlines", float64(from.stats.Deadlines))
	}
	if from.due == nil {
		return
	}
	if from.overdue != nil {
		s.addOverdue(from)
	}
	var sum int64
	for i, n := range from.due.Buckets {
		sum += n
		if within := i + 1; within == 1 || within == 6 || within == 60 {
			s.add("deadlines_due", float64(sum), strconv.Itoa(10*within)+"s")
		}
	}
}

// addOverdue adds the overdue tasks by queue.
func (s *samples) addOverdue(from *snapshot) {
	if from.stats != nil {
		for _, stats := range from.stats.Queues {
			s.add("deadlines_overdue", 0, from.labels.queue(stats.Queue))
		}
	}
	for _, d := range from.overdue {
		s.add("deadlines_overdue", 1, from.labels.queue(d.Queue))
	}
	if rest := from.due.Overdue - int64(len(from.overdue)); rest > 0 {
		s.add("deadlines_overdue", float64(rest), Other)
	}
}

// addFleet adds the workers and reapers.
func (s *samples) addFleet(from *snapshot) {
	if from.workers != nil {
		s.addWorkers(from)
	}
	if len(from.sweeps) > 0 {
		longest := slices.MinFunc(from.sweeps, func(a, b inspect.Sweep) int { return a.SweptAt.Compare(b.SweptAt) })
		s.add("last_sweep_timestamp_seconds", seconds(longest.SweptAt))
	}
}

// addWorkers adds the workers, by state and by queue. While a live worker does not report its
// queues, a queue without known workers has no value, because 0 could be wrong.
func (s *samples) addWorkers(from *snapshot) {
	for _, state := range []queue.WorkerState{queue.WorkerRunning, queue.WorkerDraining} {
		s.add("workers", 0, string(state))
	}
	if from.stats != nil && !inspect.CrewOf(from.workers).Silent {
		for name := range from.labels.queues {
			s.add("queue_workers", 0, name)
		}
	}
	for _, w := range from.workers {
		s.add("workers", 1, cmp.Or(string(w.State), unknown))
		for name := range from.labels.queues {
			if w.State != queue.WorkerDraining && w.Serves(name) {
				s.add("queue_workers", 1, name)
			}
		}
	}
}

// seconds returns a Unix time; 0 if there is no instant.
func seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMilli()) / 1000
}
