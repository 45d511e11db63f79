package races

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// journey is one agent in its own namespace, with an undisturbed worker for its children.
type journey struct {
	*stage
	*ledger
	n     int    // number of the lost call
	when  string // lost before or after the server has run it
	id    string
	stops []func()
}

// travelled is the result of travel with three children.
const travelled = "8"

func newJourney(t *testing.T, n int, when string) *journey {
	j := &journey{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{Events: "all"}), n: n, when: when}
	j.ledger = &ledger{rdb: j.stage.Redis, namespace: j.Q.Namespace()}
	leaves := worker.New(j.Another(), worker.Config{Queues: map[string]int{"leaves": 1}, Name: "leaves"})
	handleLeaves(leaves, j.ledger)
	j.stops = append(j.stops, j.Run(leaves.Run))
	j.id = j.Enqueue(queue.Task{Kind: "traveller", Queue: "agents", Payload: []byte("3")})[0]
	return j
}

// host runs agents in this process, through the server or proxy at addr.
func (j *journey) host(addr string) {
	w := worker.New(j.AnotherAt(addr), worker.Config{Concurrency: 1, Queues: map[string]int{"agents": 1}, NoReaper: true, Name: "host"})
	handleAgents(w, j.ledger)
	j.stops = append(j.stops, j.Run(w.Run))
}

func (j *journey) ended() bool { return j.Record(j.id).Status.Ended() }

// arrived checks that the agent ended as if no call had been lost. steps are the expected effects of
// its steps.
func (j *journey) arrived(losses int, steps ...string) {
	j.Helper()
	await.Until(j.T, fmt.Sprintf("the agent ends (call %d lost %s the server ran it)", j.n, j.when), j.ended)
	r := j.Record(j.id)
	if r.Status != queue.Completed || string(r.Result) != travelled || r.LeaseLosses != losses || r.Retries != 0 {
		j.Errorf("call %d lost %s: the agent is %s %s %q after %d lost leases, want COMPLETED with %s after %d",
			j.n, j.when, r.Status, r.Result, r.Error, r.LeaseLosses, travelled, losses)
	}
	if did := j.stage.Redis.LRange(j.Context(), j.ledger.key(j.id), 0, -1).Val(); !slices.Equal(did, steps) {
		j.Errorf("call %d lost %s: the effects of the steps are %q, want %q", j.n, j.when, did, steps)
	}
	children := j.stage.Redis.LRange(j.Context(), j.stage.Key("children:"+j.id), 0, -1).Val()
	runs := j.stage.Redis.HGetAll(j.Context(), j.ledger.key("runs")).Val()
	if len(runs) != 4 {
		j.Errorf("call %d lost %s: the children that ran are %v, want four", j.n, j.when, runs)
	}
	ids := []string{j.id, j.id + ".4"} // the timer of its sleep
	for id, n := range runs {
		ids = append(ids, id)
		if n != "1" {
			j.Errorf("call %d lost %s: the child %s ran %s times, want once", j.n, j.when, id, n)
		}
	}
	if len(children) != 0 && len(children) != 5 {
		j.Errorf("the children of the agent are %v, want five", children)
	}
	j.sweepOut()
	j.account(ids)
	j.checkLives()
}

var steps = []string{"first", "second", "third"}

// journeys returns a journey for each call of an agent that can be lost, before and after the server
// runs it. It first runs an undisturbed journey, so that the server has the scripts.
func journeys(t *testing.T) (all []*journey, over func()) {
	alone := newJourney(t, 0, "never")
	alone.host(alone.Addr)
	alone.arrived(0, steps...)
	step := 1
	if testing.Short() {
		step = 4
	}
	for n := 1; n <= travelWork+travelFetches; n += step {
		all = append(all, newJourney(t, n, "before"), newJourney(t, n, "after"))
	}
	return all, func() { // at the same time, because a worker does not end at once
		var group sync.WaitGroup
		for _, j := range append(all, alone) {
			for _, stop := range j.stops {
				group.Go(stop)
			}
		}
		group.Wait()
	}
}

// A live worker repeats a lost call. Nothing happens twice.
func TestAnAgentLosesOneOfItsCalls(t *testing.T) {
	all, over := journeys(t)
	defer over()
	for _, j := range all {
		proxy := faultproxy.Start(t, j.Addr)
		count := 0
		scripts, at := agentScripts(j.n)
		// The requests of the only client pass here one after the other.
		nth := func(args [][]byte) bool {
			if len(args) < 2 || scripts[string(args[1])] == "" {
				return false
			}
			count++
			return count == at
		}
		if j.when == "before" {
			proxy.CutRequest(nth, 1)
		} else {
			proxy.CutReply(nth, 1)
		}
		j.host(proxy.Addr)
	}
	for _, j := range all {
		j.arrived(0, steps...)
	}
}

// When the process of an agent dies, another one continues the agent.
func TestAnAgentIsKilledAtOneOfItsCalls(t *testing.T) {
	redistest.NoRace(t, "it kills processes")
	all, over := journeys(t)
	defer over()
	children := make([]*harness.Child, len(all))
	for i, j := range all {
		children[i] = j.Spawn("traveller", diesAtVariable+"="+strconv.Itoa(j.n), diesVariable+"="+j.when)
	}
	died := make([]string, len(all))
	for i, j := range all {
		died[i] = j.dies(children[i])
		if died[i] != "" {
			j.host(j.Addr)
		}
	}
	seen := map[string]int{}
	for i, j := range all {
		losses, want := 0, steps
		switch script, unnoted, _ := strings.Cut(died[i], " "); {
		case script == "": // the agent ended before that call
		case unnoted == "true":
			want = j.twice()
			fallthrough
		default:
			seen[j.when+" "+script]++
			await.Until(t, "the agent ends", j.ended)
			losses = j.Record(j.id).LeaseLosses
		}
		if losses > 1 {
			j.Errorf("one process died, but the agent lost %d leases", losses)
		}
		j.arrived(losses, want...)
	}
	t.Logf("killed at: %v", seen)
	for _, script := range []string{"fetch", "suspend", "remember", "recall", "settle"} {
		if !testing.Short() && (seen["before "+script] == 0 || seen["after "+script] == 0) {
			t.Errorf("no agent was killed at %s", script)
		}
	}
}

// dies waits until a child process has ended, and returns the call at which it died. If the agent ends
// first, it returns "".
func (j *journey) dies(c *harness.Child) (at string) {
	j.Helper()
	await.Until(j.T, "the process dies, or its agent ends", func() bool {
		select {
		case <-c.Gone:
			for len(c.Lines) > 0 {
				if words, ok := strings.CutPrefix(<-c.Lines, "dies "); ok {
					at = words
				}
			}
			if at == "" {
				j.Error("the process ended, but not at a call")
			}
			return true
		default:
			return j.ended()
		}
	})
	return at
}

// twice returns the effects of the steps of an agent that died after the effect of a step, before the
// step was recorded. One effect must be there twice.
func (j *journey) twice() []string {
	j.Helper()
	await.Until(j.T, "the agent ends", j.ended)
	did := j.stage.Redis.LRange(j.Context(), j.ledger.key(j.id), 0, -1).Val()
	if !slices.Equal(slices.Compact(slices.Clone(did)), steps) || len(did) != 4 {
		j.Errorf("call %d lost %s: the effects of the steps are %q, want one of them twice", j.n, j.when, did)
	}
	return did
}

// With real processes: a task has a timeout of five seconds and takes ten. A reaper ends it, and the
// agent that waits for it continues with its fallback.
func TestAnAgentGoesOnWhenItsTaskTimesOut(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{Events: "all"})
	s.Spawn("reaper")
	s.Spawn("patient")
	sleeper := s.Spawn("sleeper")
	id := s.Enqueue(queue.Task{Kind: "patient", Queue: "agents"})[0]
	if line := await.Receive(t, sleeper.Lines, "the task runs"); line != "sleeps" {
		t.Fatal(line)
	}
	ctx, cancel := context.WithTimeout(s.Context(), await.Patience)
	defer cancel()
	result, err := s.Q.Result(ctx, id)
	if err != nil || string(result) != `"fallback"` {
		t.Fatalf("the agent's result is %s, %v, want its fallback", result, err)
	}
	task, agent := s.Record(id+".1"), s.Record(id)
	if !task.TimedOut || task.TimeoutType != "execution" || task.CompletedAt.Sub(task.CreatedAt) != 5*time.Second {
		t.Errorf("the task is %+v, want it timed out after 5s", task)
	}
	if lag := agent.CompletedAt.Sub(task.CompletedAt); lag < 0 {
		t.Errorf("the agent ended %v before its task", -lag)
	}
	if line := await.Receive(t, sleeper.Lines, "the context of the handler ends"); !strings.HasPrefix(line, "stopped: ") {
		t.Error(line)
	}
	t.Logf("the timeout was detected %v late, and the agent ended %v after that", task.DetectedAt.Sub(task.CompletedAt), agent.CompletedAt.Sub(task.DetectedAt))
	s.sweepOut()
	s.account([]string{id, id + ".1"})
	s.checkLives()
}
