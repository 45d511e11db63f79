package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// who names the worker and the reaper.
const who = "micro"

// fallback is the longest wait that a sweep returns.
const fallback = 500 * time.Millisecond

// idleCalls measures calls that find nothing to do.
func (m *micro) idleCalls(ctx context.Context) error {
	n := min(m.tasks, 1000)
	for _, of := range []struct {
		name string
		call func() error
	}{
		{"fetch of nothing", func() error { _, err := m.fetch(ctx, "default", 50); return err }},
		{"sweep of nothing", func() error { _, err := reaper.Sweep(ctx, m.q, 0, who, 100, fallback); return err }},
		{"heartbeat", func() error { _, err := m.q.Attempts().Heartbeat(ctx, 0, who, time.Minute, 0, nil); return err }},
	} {
		err := m.measure(ctx, callName{of.name, 0, "call"}, n, func() error { return repeat(n, of.call) })
		if err != nil {
			return err
		}
	}
	return nil
}

// taskCalls measures enqueue, fetch and settle in batches of one size.
func (m *micro) taskCalls(ctx context.Context, batch int) error {
	calls := min(max(m.tasks/batch, 2), 1000)
	n := calls * batch
	list := tasks(n, noop)
	err := m.measure(ctx, callName{"enqueue", batch, "task"}, n, func() error {
		for i := 0; i < n; i += batch {
			if err := accepted(m.q.EnqueueAll(ctx, list[i:i+batch])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var trips [][]queue.Claim
	err = m.measure(ctx, callName{"fetch", batch, "task"}, n, func() error {
		return repeat(calls, func() error {
			claims, err := m.fetch(ctx, "default", batch)
			trips = append(trips, claims)
			return enough(len(claims), batch, err)
		})
	})
	if err != nil {
		return err
	}
	return m.measure(ctx, callName{"settle", batch, "task"}, n, func() error {
		for _, claims := range trips {
			if err := m.settle(ctx, claims); err != nil {
				return err
			}
		}
		return nil
	})
}

// function measures the enqueue of programs in other languages.
func (m *micro) function(ctx context.Context) error {
	n := min(m.tasks, 1000)
	return m.measure(ctx, callName{"curfew_enqueue", 0, "call"}, n, func() error {
		return repeat(n, func() error { return enqueueByFunction(ctx, m.rdb) })
	})
}

// sweep measures sweeps that end tasks after their deadline.
func (m *micro) sweep(ctx context.Context) error {
	const look = 100
	n := max(m.tasks/look, 2) * look
	due := func(int) queue.Task { return queue.Task{Kind: "due", Payload: payload(), Timeout: time.Millisecond} }
	if err := accepted(m.q.EnqueueAll(ctx, tasks(n, due))); err != nil {
		return err
	}
	pause(ctx, 20*time.Millisecond)
	return m.measure(ctx, callName{"sweep", look, "task"}, n, func() error { return sweepAll(ctx, m.q, n, look) })
}

// fetch claims up to n tasks of a queue.
func (m *micro) fetch(ctx context.Context, line string, n int) ([]queue.Claim, error) {
	m.seq++
	trip, err := m.q.Attempts().Fetch(ctx, 0, who, queue.Ask{N: n, Seq: m.seq, Lease: time.Hour, Quotas: []queue.Quota{{Queue: line, N: n}}})
	return trip.Claims, err
}

// settle completes the claimed tasks.
func (m *micro) settle(ctx context.Context, claims []queue.Claim) error {
	_, err := m.q.Attempts().Settle(ctx, 0, who, queue.NewCall(), completions(claims), queue.Ask{})
	return err
}

// completions returns outcomes that complete the claimed tasks.
func completions(claims []queue.Claim) []queue.Outcome {
	outcomes := make([]queue.Outcome, len(claims))
	for i, c := range claims {
		outcomes[i] = queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete}
	}
	return outcomes
}

// sweepAll sweeps until n tasks have timed out.
func sweepAll(ctx context.Context, q *queue.Queue, n, look int) error {
	for ended := 0; ended < n; {
		s, err := reaper.Sweep(ctx, q, 0, who, look, fallback)
		if err != nil {
			return err
		}
		if ended += s.TimedOut; s.TimedOut == 0 {
			return fmt.Errorf("%d of %d timed out", ended, n)
		}
	}
	return nil
}

// enough returns err, or an error unless got is n tasks.
func enough(got, n int, err error) error {
	if err == nil && got != n {
		err = fmt.Errorf("got %d of %d tasks", got, n)
	}
	return err
}

func repeat(n int, call func() error) error {
	for range n {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}
