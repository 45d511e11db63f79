package metrics

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// Prometheus takes the first value of a new time series as its start, so a counter that appears with
// 1 has not increased. So counters of usual events are exported as 0 before the first event.

// maxExpected bounds the exported pairs of a queue and a kind that have no task yet.
const maxExpected = 200

var (
	usualEnds = []inspect.Ends{{Status: queue.Completed}, {Status: queue.Failed, Reason: queue.ReasonError}, {Status: queue.Failed, Reason: queue.ReasonFailed},
		{Status: queue.Failed, Reason: queue.ReasonTimeout}, {Status: queue.Cancelled, Reason: queue.ReasonCancelled}}
	usualTimeouts = []inspect.Ends{{TimeoutType: queue.TimeoutExecution, Policy: "fail"}, {TimeoutType: queue.TimeoutExecution, Policy: "cancel_all"},
		{TimeoutType: queue.TimeoutQueue, Policy: "fail"}, {TimeoutType: queue.TimeoutAttempt, Policy: "fail"}, {TimeoutType: queue.TimeoutWorkflow, Policy: "fail"}}
	modes       = []queue.Mode{queue.WaitAll, queue.WaitFailFast, queue.WaitSettled, queue.WaitAny, queue.WaitAnyOK, queue.WaitNOfM, queue.WaitNSettled, queue.WaitCollect}
	wakeReasons = []string{"satisfied", "impossible", "timed_out"}
)

// beginPair exports counters of 0 for a pair of a queue and a kind.
func (s *samples) beginPair(line, kind string) {
	s.add("tasks_enqueued_total", 0, line, kind, string(inspect.FromClient), "now")
	for _, e := range usualEnds {
		s.add("tasks_finished_total", 0, line, kind, string(e.Status), string(e.Reason))
	}
	for _, e := range usualTimeouts {
		s.add("task_timeouts_total", 0, line, kind, string(e.TimeoutType), e.Policy)
	}
	s.add("attempt_timeouts_total", 0, line, kind)
	s.add("wait_timeouts_total", 0, line, kind, "fail")
}

// beginQueue exports counters of 0 for a queue, in the metrics without kinds. Only the lag of
// deadlines has an empty histogram, because an alert reads it.
func (s *samples) beginQueue(line string) {
	s.add("late_completions_total", 0, line)
	s.join("timeout_detection_lag_seconds", inspect.Histogram{Buckets: lags, Counts: make([]int64, len(lags)+1)}, line, string(queue.TimeoutExecution))
}

// beginWakeups exports counters of 0 for agents that were woken.
func (s *samples) beginWakeups() {
	for _, mode := range modes {
		for _, reason := range wakeReasons {
			s.add("wait_wakeups_total", 0, string(mode), reason)
		}
	}
}

// expected returns the pairs that can get their first task next: a live worker has a handler for the
// kind and serves the queue, and no task of the kind was created in the queue. If there are many, it
// returns the first pairs by name.
func expected(figures []inspect.KindFigures, workers []inspect.Worker) (pairs []inspect.KindFigures) {
	counted, missing := map[pair]bool{}, map[pair]bool{}
	for _, f := range figures {
		counted[pair{f.Queue, f.Kind}] = true
	}
	for _, w := range workers {
		for _, line := range slices.Concat(w.Strict, slices.Collect(maps.Keys(w.Queues))) {
			for _, kind := range w.Kinds {
				if p := (pair{line, kind}); !counted[p] {
					missing[p] = true
				}
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(missing), pair.compare)
	for _, p := range sorted[:min(len(sorted), maxExpected)] {
		pairs = append(pairs, inspect.KindFigures{Queue: p.queue, Kind: p.kind})
	}
	return pairs
}

func (p pair) compare(other pair) int {
	return cmp.Or(cmp.Compare(p.queue, other.queue), cmp.Compare(p.kind, other.kind))
}

// counts reports whether a namespace counts its tasks by kind. It returns false if that is unknown.
func counts(ctx context.Context, q *queue.Queue) bool {
	word, err := q.Client().HGet(ctx, q.Root(0), "figures").Result()
	return errors.Is(err, redis.Nil) || err == nil && word != "off"
}
