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

// Prometheus takes the first value of a new time series as its beginning: a counter that appears with 1 has not increased. So counters
// of what usually happens are exported as 0 before it happens the first time.

// mostExpected is how many pairs of a queue and a kind are exported that have no task yet.
const mostExpected = 200

var (
	usualEnds = []inspect.Ends{{Status: queue.Completed}, {Status: queue.Failed, Reason: queue.ReasonError}, {Status: queue.Failed, Reason: queue.ReasonFailed},
		{Status: queue.Failed, Reason: queue.ReasonTimeout}, {Status: queue.Cancelled, Reason: queue.ReasonCancelled}}
	usualTimeouts = []inspect.Ends{{TimeoutType: queue.TimeoutExecution, Policy: "fail"}, {TimeoutType: queue.TimeoutExecution, Policy: "cancel_all"},
		{TimeoutType: queue.TimeoutQueue, Policy: "fail"}, {TimeoutType: queue.TimeoutAttempt, Policy: "fail"}, {TimeoutType: queue.TimeoutWorkflow, Policy: "fail"}}
	modes       = []queue.Mode{queue.WaitAll, queue.WaitFailFast, queue.WaitSettled, queue.WaitAny, queue.WaitAnyOK, queue.WaitNOfM, queue.WaitNSettled, queue.WaitCollect}
	wakeReasons = []string{"satisfied", "impossible", "timed_out"}
)

// beginPair exports a pair of a queue and a kind with counters of 0.
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

// beginQueue exports what is counted of a queue without its kinds. Of the histograms only the lag of deadlines has an empty one, since an
// alert looks at it.
func (s *samples) beginQueue(line string) {
	s.add("late_completions_total", 0, line)
	s.join("timeout_detection_lag_seconds", inspect.Histogram{Buckets: lags, Counts: make([]int64, len(lags)+1)}, line, string(queue.TimeoutExecution))
}

// beginWakeups exports counters of agents that were woken.
func (s *samples) beginWakeups() {
	for _, mode := range modes {
		for _, reason := range wakeReasons {
			s.add("wait_wakeups_total", 0, string(mode), reason)
		}
	}
}

// expected returns the pairs that can get their first task next: a live worker has a handler for the kind and serves the queue, and
// no task of the kind was created in the queue. If there are many, it returns the first ones by name.
func expected(figures []inspect.KindFigures, workers []inspect.Worker) (pairs []inspect.KindFigures) {
	known, found := map[pair]bool{}, map[pair]bool{}
	for _, f := range figures {
		known[pair{f.Queue, f.Kind}] = true
	}
	for _, w := range workers {
		for _, line := range slices.Concat(w.Strict, slices.Collect(maps.Keys(w.Queues))) {
			for _, kind := range w.Kinds {
				if one := (pair{line, kind}); !known[one] {
					found[one] = true
				}
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(found), pair.compare)
	for _, one := range sorted[:min(len(sorted), mostExpected)] {
		pairs = append(pairs, inspect.KindFigures{Queue: one.queue, Kind: one.kind})
	}
	return pairs
}

func (p pair) compare(other pair) int {
	return cmp.Or(cmp.Compare(p.queue, other.queue), cmp.Compare(p.kind, other.kind))
}

// counts reports whether a namespace counts its tasks by kind. It returns false also if it is not known.
func counts(ctx context.Context, q *queue.Queue) bool {
	word, err := q.Client().HGet(ctx, q.Root(0), "figures").Result()
	return errors.Is(err, redis.Nil) || err == nil && word != "off"
}
