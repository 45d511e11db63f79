package races

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// Processes that run agents and their children are killed while they have many tasks. Every agent
// completes once, with the right sum.
func TestProcessesOfAgentsAreKilled(t *testing.T) {
	redistest.NoRace(t, "it kills processes")
	again(t, testProcessesOfAgents)
}

func testProcessesOfAgents(t *testing.T) {
	const processes, children, crowd = 3, 5, 30
	kills := harness.Times(2, 4, 8)
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{Events: "all"})
	ledger := &ledger{rdb: s.Redis, namespace: s.Q.Namespace()}
	var running []*harness.Child
	for range processes {
		running = append(running, s.Spawn("both"))
	}
	await.Until(t, "all processes have a lease", func() bool { return s.zcard("workers") == processes })

	// Agents are enqueued all the time. Each gets its signal at a random time, before or after it
	// has begun.
	var agents, unsignalled []string
	signal := func(n int) {
		for ; n > 0 && len(unsignalled) > 0; n-- {
			i := rand.IntN(len(unsignalled))
			r, err := s.Q.Signal(s.Context(), unsignalled[i], "more", []byte("100"))
			if err != nil || !r.Done {
				t.Fatalf("signal = %+v, %v", r, err)
			}
			unsignalled[i] = unsignalled[len(unsignalled)-1]
			unsignalled = unsignalled[:len(unsignalled)-1]
		}
	}
	enter := func() {
		tasks := make([]queue.Task, crowd)
		for i := range tasks {
			tasks[i] = queue.Task{Kind: "signalled", Queue: "agents", Payload: []byte(strconv.Itoa(children))}
		}
		ids := s.Enqueue(tasks...)
		agents, unsignalled = append(agents, ids...), append(unsignalled, ids...)
	}
	for i := range kills {
		enter()
		signal(crowd / 2)
		until(time.Now().Add(time.Duration(20+rand.IntN(250)) * time.Millisecond))
		enter() // so that the process dies with many tasks
		until(time.Now().Add(time.Duration(rand.IntN(30)) * time.Millisecond))
		running[i%processes].Kill()
		running[i%processes] = s.Spawn("both")
	}
	signal(len(unsignalled))
	await.Until(t, "all agents have ended", func() bool { return s.AllEnded(agents) })
	for _, c := range running {
		c.Kill()
	}

	ids, runs := slices.Clone(agents), s.Redis.HGetAll(s.Context(), ledger.key("runs")).Val()
	lost, losses := 0, map[string]int{} // of the whole life of a task; its record counts those in a row
	for _, e := range s.Events(s.Q) {
		if e.Kind == "task_lease_lost" {
			losses[e.ID]++
		}
	}
	for _, r := range s.Records(s.Q, agents) {
		r.LeaseLosses = losses[r.ID]
		ids = append(ids, s.travels(ledger, r, children)...)
		lost += r.LeaseLosses
	}
	for id := range runs {
		if strings.Contains(id, ".n") { // the child that an agent named
			ids = append(ids, id)
		}
	}
	s.sweepOut()
	records := s.account(ids)
	s.checkLives()
	for id, n := range runs {
		r := records[id]
		if r == nil {
			s.Complain("%s ran, but is not a child of an agent", id)
		} else if times, _ := strconv.Atoi(n); times < 1 || times > 1+losses[id] {
			s.Complain("%s ran %s times after %d lost leases", id, n, losses[id])
		} else {
			lost += losses[id]
		}
	}
	t.Logf("%d processes killed, %d agents, %d tasks, %d lost leases", kills, len(agents), len(ids), lost)
	if lost == 0 {
		t.Error("no lease was lost, so this test shows nothing")
	}
}

// travels checks an agent that has ended. It returns the ids of its numbered children, including its
// timer, and of its signal.
func (s *stage) travels(l *ledger, r *queue.Record, children int) (ids []string) {
	s.Helper()
	sum := children*(children-1) + 2 + 100
	if r.Status != queue.Completed || string(r.Result) != strconv.Itoa(sum) {
		s.Complain("the agent %s is %s %s %q, want COMPLETED with %d", r.ID, r.Status, r.Result, r.Error, sum)
	}
	did := map[string]int{}
	for _, step := range s.Redis.LRange(s.Context(), l.key(r.ID), 0, -1).Val() {
		did[step]++
	}
	for _, step := range steps {
		if did[step] < 1 || did[step] > 1+r.LeaseLosses {
			s.Complain("the steps of the agent %s had their effects %v times, after %d lost leases", r.ID, did, r.LeaseLosses)
		}
	}
	for n := range children + 1 {
		ids = append(ids, fmt.Sprint(r.ID, ".", n+1))
	}
	return append(ids, r.ID+".s-more")
}
