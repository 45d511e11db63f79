package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// batches are the batch sizes of enqueue, fetch and settle.
var batches = []int{1, 8, 50, 500}

// Micro measures the cost of one call to Redis: the CPU time of its main thread, the time within
// scripts, and the median call. One client makes the calls, through package queue, and the server
// does nothing else. Tasks have 100 random bytes and a deadline.
//
//   - enqueue, fetch, settle: for one task, in batches of 1, 8, 50 and 500. Settle completes,
//     and fetches no further tasks.
//   - curfew_enqueue: for one call of this function, which enqueues a task of another language.
//   - sweep: for one pending task that is past its deadline, 100 a call.
//   - fetch of nothing, sweep of nothing, heartbeat: for one call, in an empty namespace.
//   - suspend: for one agent, which creates 10 children and waits for all of them.
//   - settle and wake: for one agent, whose 10 children are completed, which wakes it.
//
// The figures are of one machine in one moment, so measure two versions in turns. Compare the CPU time of large calls, because
// other programs interrupt them, and the median of small calls: a third of their CPU time is sockets, and depends on how idle
// the machine is. Package internal/test/luacount counts the Lua instructions of a call, which are the same everywhere.
//
// Small batches use fewer tasks than the others: at most 1,000 calls. Micro empties the server, and resets its statistics.
func Micro(ctx context.Context, rdb redis.UniversalClient, tasks int) (Report, error) {
	m := &micro{rdb: rdb, tasks: tasks, watch: stopwatch{rdb}, report: Report{Bench: "micro"}}
	err := m.round(ctx)
	return m.report, err
}

// micro is a running measurement of Micro.
type micro struct {
	rdb   redis.UniversalClient
	tasks int
	watch stopwatch

	q   *queue.Queue
	seq int64 // of the last fetch

	report Report
}

// callName identifies a measured call.
type callName struct {
	call  string
	batch int
	per   string
}

func (c callName) String() string {
	if c.batch == 0 {
		return c.call
	}
	return fmt.Sprint(c.call, " ", c.batch)
}

func (m *micro) round(ctx context.Context) error {
	steps := []func(context.Context) error{m.idleCalls}
	for _, batch := range batches {
		steps = append(steps, func(ctx context.Context) error { return m.taskCalls(ctx, batch) })
	}
	for _, step := range append(steps, m.function, m.sweep, m.agentCalls) {
		if err := m.open(ctx); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open empties the server and opens a namespace.
func (m *micro) open(ctx context.Context) (err error) {
	m.seq = 0
	m.q, err = open(ctx, m.rdb, 1)
	return err
}

// measure measures a step that handles n units. name.per is the unit: tasks, calls or agents.
func (m *micro) measure(ctx context.Context, name callName, n int, step func() error) error {
	u, err := m.watch.time(ctx, step)
	if err != nil {
		return fmt.Errorf("%s %d: %w", name.call, name.batch, err)
	}
	m.report.add(name.String()+": CPU", u.cpu/float64(n), "µs a "+name.per)
	m.report.add(name.String()+": within scripts", u.script/float64(n), "µs a "+name.per)
	m.report.add(name.String()+": median call", u.median, "µs")
	return nil
}

// who names the worker and the reaper.
const who = "micro"

// fallback is the longest wait that a sweep returns.
const fallback = 500 * time.Millisecond

// idleCalls measures calls that find nothing to do.
func (m *micro) idleCalls(ctx context.Context) error {
	n := min(m.tasks, 1000)
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"fetch of nothing", func() error { _, err := m.fetch(ctx, "default", 50); return err }},
		{"sweep of nothing", func() error { _, err := reaper.Sweep(ctx, m.q, 0, who, 100, fallback); return err }},
		{"heartbeat", func() error { _, err := claim.Of(m.q).Heartbeat(ctx, 0, who, time.Minute, 0, nil); return err }},
	} {
		err := m.measure(ctx, callName{c.name, 0, "call"}, n, func() error { return repeat(n, c.call) })
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
	trip, err := claim.Of(m.q).Fetch(ctx, 0, who, claim.Ask{N: n, Seq: m.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: line, N: n}}})
	return trip.Claims, err
}

// settle completes the claimed tasks.
func (m *micro) settle(ctx context.Context, claims []queue.Claim) error {
	_, err := claim.Of(m.q).Settle(ctx, 0, who, queue.NewCall(), completions(claims), claim.Ask{})
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
	for total := 0; total < n; {
		s, err := reaper.Sweep(ctx, q, 0, who, look, fallback)
		if err != nil {
			return err
		}
		if total += s.TimedOut; s.TimedOut == 0 {
			return fmt.Errorf("%d of %d timed out", total, n)
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

// members is how many children each agent has in Micro.
const members = 10

// agentCalls measures how agents are suspended and woken.
func (m *micro) agentCalls(ctx context.Context) error {
	n := max(m.tasks/50, 2)
	list := tasks(n, agent)
	for i := range list {
		list[i].Queue = "agents"
	}
	if err := accepted(m.q.EnqueueAll(ctx, list)); err != nil {
		return err
	}
	agents, err := m.fetchAll(ctx, "agents", n)
	if err != nil {
		return err
	}
	err = m.measure(ctx, callName{"suspend", members, "agent"}, n, func() error {
		for _, a := range agents {
			if _, err := claim.Of(m.q).Suspend(ctx, suspension(a)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	children, err := m.fetchAll(ctx, "default", n*members)
	if err != nil {
		return err
	}
	families := byOwner(children)
	err = m.measure(ctx, callName{"settle and wake", members, "agent"}, n, func() error {
		for _, a := range agents {
			if err := m.settle(ctx, families[a.ID]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = m.fetchAll(ctx, "agents", n) // fails unless all were woken
	return err
}

// byOwner groups children by their agent.
func byOwner(children []queue.Claim) map[string][]queue.Claim {
	families := map[string][]queue.Claim{}
	for _, c := range children {
		owner, _, _ := strings.Cut(c.ID, ".")
		families[owner] = append(families[owner], c)
	}
	return families
}

// fetchAll claims n tasks of a queue.
func (m *micro) fetchAll(ctx context.Context, line string, n int) ([]queue.Claim, error) {
	var list []queue.Claim
	for len(list) < n {
		claims, err := m.fetch(ctx, line, min(n-len(list), 500))
		if err == nil && len(claims) == 0 {
			err = enough(len(list), n, nil)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, claims...)
	}
	return list, nil
}

// suspension returns a suspension in which an agent creates its children and waits for all of them.
func suspension(a queue.Claim) claim.Suspension {
	s := claim.Suspension{Agent: a.ID, Epoch: a.Epoch, Worker: who,
		Wait: claim.Wait{Entry: 1, Digest: "wait", Label: "all of its children"}}
	for i := range members {
		id := a.ID + "." + strconv.Itoa(i+1)
		s.Children = append(s.Children, queue.Task{ID: id, Kind: "member", Payload: member})
		s.Wait.Members = append(s.Wait.Members, claim.Member{ID: id})
	}
	return s
}
