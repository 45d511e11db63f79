package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// FlowsConfig sets the sizes that Flows measures.
type FlowsConfig struct {
	Runs        int // how many runs of each shape; also how many at once of 20 nodes
	Lags        int // how many runs of each shape, one at a time, for the time between nodes
	Chain       int // how many nodes the long chain has
	Concurrency int // of the worker
}

// Flows measures runs of definitions: the number that one worker process completes per second, the cost of a node, and the time from the
// end of a node's handler to the start of the handler that follows. Handlers do nothing. It measures a chain of 10 nodes, a fan-out
// of 10 with a node that follows them all, and each of them beside an agent in Go that does the same (package agentwait). Then it
// runs one long chain, and many runs of 20 nodes at once.
func Flows(ctx context.Context, rdb redis.UniversalClient, config FlowsConfig) (Report, error) {
	f := &flows{FlowsConfig: config, rdb: rdb, report: Report{Bench: "flow"}}
	f.meter = &meter{rdb: rdb, report: &f.report}
	for _, s := range []shape{chainOf(10), fanOutOf(10)} {
		for _, kind := range []string{"flow." + s.id, s.id} {
			if err := f.rate(ctx, s, kind, f.Runs); err != nil {
				return f.report, fmt.Errorf("%s: %w", kind, err)
			}
			if err := f.lag(ctx, s, kind); err != nil {
				return f.report, fmt.Errorf("%s, one at a time: %w", kind, err)
			}
		}
	}
	if err := f.long(ctx); err != nil {
		return f.report, fmt.Errorf("the long chain: %w", err)
	}
	return f.report, f.rate(ctx, chainOf(20), "flow.chain20", f.Runs)
}

// shape is a workflow, as a definition and by hand.
type shape struct {
	id, name   string
	nodes      int
	definition string
	byHand     func(*agentwait.Agent, []byte) ([]byte, error)
	lags       func(ran []span) []time.Duration // from the handlers of one run
}

// span is when a handler began and ended.
type span struct{ began, ended time.Time }

// definition returns a definition of nodes that are leaves. after has the dependencies of each.
func definition(id string, after ...[]string) string {
	nodes := make([]string, len(after))
	for i, names := range after {
		nodes[i] = fmt.Sprintf(`{"name":"n%d","executor":{"type":"leaf"}`, i)
		if len(names) > 0 {
			nodes[i] += `,"dependencies":["` + strings.Join(names, `","`) + `"]`
		}
		nodes[i] += "}"
	}
	return fmt.Sprintf(`{"id":%q,"spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[%s]}}]}}`, id, strings.Join(nodes, ","))
}

var leafTask = queue.Task{Kind: "leaf"}

// chainOf returns n nodes, one after the other.
func chainOf(n int) shape {
	after := make([][]string, n)
	for i := range n - 1 {
		after[i+1] = []string{fmt.Sprint("n", i)}
	}
	id := fmt.Sprint("chain", n)
	return shape{id, fmt.Sprintf("chain of %d", n), n, definition(id, after...),
		func(a *agentwait.Agent, _ []byte) ([]byte, error) {
			for range n {
				if _, err := agentwait.Run[[]byte](a, nil, leafTask); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
		func(ran []span) (lags []time.Duration) {
			for i := 1; i < len(ran); i++ {
				lags = append(lags, ran[i].began.Sub(ran[i-1].ended))
			}
			return lags
		}}
}

// fanOutOf returns n nodes at once, and a node after all of them.
func fanOutOf(n int) shape {
	after := make([][]string, n+1)
	for i := range n {
		after[n] = append(after[n], fmt.Sprint("n", i))
	}
	id := fmt.Sprint("fan", n)
	return shape{id, fmt.Sprintf("fan-out of %d", n), n + 1, definition(id, after...),
		func(a *agentwait.Agent, _ []byte) ([]byte, error) {
			futures := make([]*agentwait.Future[[]byte], n)
			for i := range futures {
				futures[i] = agentwait.Schedule[[]byte](a, nil, leafTask)
			}
			if _, err := agentwait.JoinAll(a, futures...); err != nil {
				return nil, err
			}
			return agentwait.Run[[]byte](a, nil, leafTask)
		},
		func(ran []span) []time.Duration {
			var last time.Time
			for _, node := range ran[:len(ran)-1] {
				if node.ended.After(last) {
					last = node.ended
				}
			}
			return []time.Duration{ran[len(ran)-1].began.Sub(last)}
		}}
}

// flows measures runs.
type flows struct {
	FlowsConfig
	rdb    redis.UniversalClient
	meter  *meter
	report Report
}

// label returns the common prefix of the figures for a kind of this shape.
func (s shape) label(kind string) string {
	if kind == s.id {
		return s.name + " by hand"
	}
	return s.name
}

// prepare opens a namespace and returns a worker of a shape, whose leaves call ran.
func (f *flows) prepare(ctx context.Context, s shape, ran func(span)) (*queue.Queue, *worker.Worker, error) {
	q, err := open(ctx, f.rdb, 1)
	if err != nil {
		return nil, nil, err
	}
	if _, err := flow.Put(ctx, q, []byte(s.definition)); err != nil {
		return nil, nil, err
	}
	w := worker.New(q, worker.Config{Concurrency: f.Concurrency})
	flow.Register(w)
	agentwait.Handle(w, s.id, s.byHand)
	w.HandleRaw("leaf", func(context.Context, []byte) ([]byte, error) {
		began := time.Now()
		ran(span{began, time.Now()})
		return nil, nil
	})
	return q, w, nil
}

// workOff runs a worker until n runs and all their nodes have completed.
func (f *flows) workOff(ctx context.Context, q *queue.Queue, w *worker.Worker, n, nodes int, leaves *countdown) (time.Duration, error) {
	stopped, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(stopped)
		if err := leaves.wait(ctx); err != nil {
			failed <- err
			return
		}
		for { // the last runs end after their last nodes
			_, done, err := progress(ctx, q)
			if err != nil || done >= n*(nodes+1) {
				failed <- err
				return
			}
			pause(ctx, 2*time.Millisecond)
		}
	}()
	took, err := runUntil(ctx, w, stopped)
	if err != nil {
		return took, err
	}
	return took, <-failed
}

// rate measures n concurrent runs: the number that end in a second, and the cost of a node with its share of the run.
func (f *flows) rate(ctx context.Context, s shape, kind string, n int) error {
	leaves := newCountdown(n * s.nodes)
	q, w, err := f.prepare(ctx, s, func(span) { leaves.decrement() })
	if err != nil {
		return err
	}
	if err := accepted(q.EnqueueAll(ctx, tasks(n, func(int) queue.Task { return queue.Task{Kind: kind, Timeout: time.Hour} }))); err != nil {
		return err
	}
	commands, err := f.meter.commands(ctx)
	if err != nil {
		return err
	}
	before, err := cpu(ctx, f.rdb)
	if err != nil {
		return err
	}
	took, err := f.workOff(ctx, q, w, n, s.nodes, leaves)
	if err != nil {
		return err
	}
	after, err := cpu(ctx, f.rdb)
	if err != nil {
		return err
	}
	total, err := f.meter.commands(ctx)
	name, nodes := s.label(kind), float64(n*s.nodes)
	f.report.add(fmt.Sprintf("%s, %d at once", name, n), float64(n)/took.Seconds(), "runs/s")
	f.report.add(name+": commands", float64(total-commands)/nodes, "a node")
	f.report.add(name+": time of Redis", (after[0]-before[0])/nodes*1e6, "µs a node")
	f.report.add(name+": time of the worker", (after[1]-before[1])/nodes*1e6, "µs a node")
	return err
}

// lag measures the time between nodes, in one run at a time.
func (f *flows) lag(ctx context.Context, s shape, kind string) error {
	var mu sync.Mutex
	var ran []span
	q, w, err := f.prepare(ctx, s, func(one span) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, one)
	})
	if err != nil {
		return err
	}
	var lags []time.Duration
	done, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		for range f.Lags {
			r, err := q.Enqueue(ctx, queue.Task{Kind: kind, Timeout: time.Hour})
			if err == nil {
				_, err = q.Result(ctx, r.ID)
			}
			if err != nil {
				failed <- err
				return
			}
			mu.Lock()
			lags = append(lags, s.lags(ran)...)
			ran = nil
			mu.Unlock()
		}
		failed <- nil
	}()
	if _, err := runUntil(ctx, w, done); err != nil {
		return err
	}
	f.report.percentiles(s.label(kind)+": end of a node to the next handler", lags)
	return <-failed
}

// long measures one long chain: its time, and the memory of its keys when its last node runs.
func (f *flows) long(ctx context.Context) error {
	s := chainOf(f.Chain)
	leaves, rest := newCountdown(s.nodes), s.nodes
	var bytes map[string]int64
	var unread error
	var root string
	q, w, err := f.prepare(ctx, s, func(span) {
		if rest--; rest == 0 { // one node runs at a time
			bytes, unread = weigh(ctx, f.rdb, root)
		}
		leaves.decrement()
	})
	if err != nil {
		return err
	}
	root = q.Root(0) + ":"
	if _, err := q.Enqueue(ctx, queue.Task{Kind: "flow." + s.id, Timeout: time.Hour}); err != nil {
		return err
	}
	took, err := f.workOff(ctx, q, w, 1, s.nodes, leaves)
	if err != nil || unread != nil {
		return errors.Join(err, unread)
	}
	var sum int64
	for _, n := range bytes {
		sum += n
	}
	f.report.add(s.name+": all of it", took.Seconds()*1000, "ms")
	f.report.add(s.name+": memory of all keys at its last node", float64(sum), "B")
	return nil
}
