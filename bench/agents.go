package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// AgentRate measures how many agents a second one worker process completes: n agents with fan
// children each, whose handlers do nothing. The time is taken from the start of the worker,
// when all agents are in line, until the last of them is settled. One worker runs agents and
// children.
//
// For comparison it first measures as many plain tasks as the agents need claims: one for each
// child and two for each agent.
func AgentRate(ctx context.Context, rdb redis.UniversalClient, n, fan, concurrency int) (Report, error) {
	r := Report{Bench: "agents"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	plain := n * (fan + 2)
	if err := accepted(q.EnqueueAll(ctx, tasks(plain, noop))); err != nil {
		return r, err
	}
	took, err := drain(ctx, q, plain, concurrency)
	if err != nil {
		return r, err
	}
	r.add("beside: plain tasks drained", float64(plain)/took.Seconds(), "tasks/s")
	if q, err = open(ctx, rdb, 1); err != nil {
		return r, err
	}
	if err := accepted(q.EnqueueAll(ctx, tasks(n, agent))); err != nil {
		return r, err
	}
	before, err := cpu(ctx, rdb)
	if err != nil {
		return r, err
	}
	if took, err = drainAgents(ctx, q, n, fan, concurrency); err != nil {
		return r, err
	}
	after, err := cpu(ctx, rdb)
	r.add("agents", float64(n)/took.Seconds(), "agents/s")
	r.add("their children", float64(n*fan)/took.Seconds(), "tasks/s")
	r.add("time of Redis an agent", (after[0]-before[0])/float64(n)*1e6, "µs")
	r.add("time of the worker an agent", (after[1]-before[1])/float64(n)*1e6, "µs")
	return r, err
}

// cpu returns the CPU seconds that Redis and this process have used. Other programs on the
// machine change CPU time less than elapsed time.
func cpu(ctx context.Context, rdb redis.UniversalClient) (used [2]float64, err error) {
	info, err := rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return used, err
	}
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(infoFields(info)[name], 64)
		if err != nil {
			return used, err
		}
		used[0] += seconds
	}
	used[1], err = ownCPU()
	return used, err
}

// agent returns the usual agent. It has a payload and a deadline, which its children inherit.
func agent(int) queue.Task {
	return queue.Task{Kind: "agent", Payload: payload(), Timeout: time.Hour}
}

// fanOut schedules the usual children of an agent and waits for all of them.
func fanOut(a *agentwait.Agent, fan int) error {
	children := make([]*agentwait.Future[[]byte], fan)
	for i := range children {
		children[i] = agentwait.Schedule[[]byte](a, member, queue.Task{Kind: "member"})
	}
	_, err := agentwait.JoinAll(a, children...)
	return err
}

// member is the payload of every child. It is fixed, because a replay must make the same children.
var member = payload()

func nothing(context.Context, []byte) ([]byte, error) { return nil, nil }

// drainAgents runs a worker until n agents and their children have ended.
func drainAgents(ctx context.Context, q *queue.Queue, n, fan, concurrency int) (time.Duration, error) {
	left := newCountdown(n)
	w := worker.New(q, worker.Config{Concurrency: concurrency})
	w.HandleRaw("member", nothing)
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ []byte) ([]byte, error) {
		err := fanOut(a, fan)
		if err == nil {
			left.one()
		}
		return nil, err
	})
	return workOff(ctx, q, w, n*(fan+1), left)
}

// workOff runs a worker until left is zero, and returns how long that took. It fails unless exactly
// n tasks were completed.
func workOff(ctx context.Context, q *queue.Queue, w *worker.Worker, n int, left *countdown) (time.Duration, error) {
	_, before, err := progress(ctx, q)
	if err != nil {
		return 0, err
	}
	took, err := runUntil(ctx, w, left.zero)
	if err != nil {
		return 0, err
	}
	_, after, err := progress(ctx, q)
	return took, enough(after-before, n, err)
}

// runUntil runs a worker until happened is closed, and returns how long that took, with the
// time in which the worker settled its last tasks.
func runUntil(ctx context.Context, w *worker.Worker, happened <-chan struct{}) (time.Duration, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- w.Run(ctx) }()
	select {
	case <-happened:
	case err := <-ended:
		return 0, stoppedEarly(ctx, err)
	}
	stop()
	err := <-ended // Run returns when all is settled
	return time.Since(start), err
}

// stoppedEarly returns the error of a measurement whose worker has stopped. err is what Run returned.
func stoppedEarly(ctx context.Context, err error) error {
	return fmt.Errorf("the worker stopped: %w", cmp.Or(err, context.Cause(ctx), errors.New("it was asked to stop")))
}

// progress returns how many tasks of a namespace were enqueued, and how many were completed.
func progress(ctx context.Context, q *queue.Queue) (enqueued, completed int, err error) {
	stats, err := q.Stats(ctx)
	for _, of := range stats.Queues {
		enqueued += int(of.Enqueued)
		completed += int(of.Completed)
	}
	return enqueued, completed, err
}
