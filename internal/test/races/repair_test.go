package races

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// wreck is a namespace whose indexes and counters a test damages. Its records stay as they are.
type wreck struct {
	*stage
	ids      []string
	repaired int // findings
}

func newWreck(t *testing.T) *wreck {
	t.Helper()
	return &wreck{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{Events: queue.EventsAll})}
}

// hand returns a worker of some queues.
func (w *wreck) hand(q *queue.Queue, queues ...string) *worker.Worker {
	of := map[string]int{}
	for _, name := range queues {
		of[name] = 1
	}
	hand := worker.New(q, worker.Config{Queues: of, NoReaper: true, ShutdownTimeout: time.Second})
	hand.HandleRaw("plain", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	agentwait.Handle(hand, "agent", func(a *agentwait.Agent, n int) (int, error) {
		var all []*agentwait.Future[[]byte]
		for range n {
			all = append(all, agentwait.Schedule[[]byte](a, nil, queue.Task{Kind: "plain", Queue: "leaves"}))
		}
		_, err := agentwait.JoinAll(a, all...)
		return n, err
	})
	return hand
}

// furnish makes tasks of all kinds, among them agents that wait for children which nobody runs yet.
func (w *wreck) furnish() {
	w.Helper()
	stop := w.Run(w.hand(w.Q, "agents").Run)
	var agents []string
	for n := range 6 {
		agents = append(agents, w.Enqueue(queue.Task{Kind: "agent", Queue: "agents", Payload: fmt.Append(nil, n+1), Timeout: time.Hour})...)
	}
	await.Until(w, "all agents wait", func() bool {
		for _, r := range w.Records(w.Q, agents) {
			if r == nil || r.Status != queue.Waiting {
				return false
			}
		}
		return true
	})
	stop()
	w.ids = append(w.ids, agents...)
	w.add(30)
	w.fetch("held", 1, 5, time.Minute)
	if _, err := w.Q.CancelAll(w.Context(), w.ids[len(w.ids)-3:], ""); err != nil {
		w.Fatal(err)
	}
}

func (w *wreck) add(n int) {
	w.Helper()
	for i := range n {
		task := queue.Task{Kind: "plain", Timeout: time.Hour}
		switch i % 5 {
		case 1:
			task.IdempotencyKey = queue.NewCall()
		case 2:
			task.Delay = time.Duration(rand.IntN(1000)) * time.Millisecond
		case 3:
			task.QueueTimeout = 30 * time.Minute
		case 4:
			task.Timeout = time.Duration(1+rand.IntN(1000)) * time.Millisecond
		}
		w.ids = append(w.ids, w.Enqueue(task)...)
	}
}

// damage spoils one entry of a key, if it holds what a repair can make again.
func (w *wreck) damage(key string) {
	name := strings.TrimPrefix(key, w.Q.Root(0)+":")
	kind, _, _ := strings.Cut(name, ":")
	switch kind {
	case "deadlines", "limits", "delayed", "waits":
		if rand.IntN(2) == 0 {
			w.spoil("ZADD", key, rand.IntN(1<<40), w.ids[rand.IntN(len(w.ids))])
			return
		}
		fallthrough
	case "ready", "claims", "workers", "retained", "dead", "pending", "forget", "draining":
		if member, err := w.Redis.ZRandMember(w.Context(), key, 1).Result(); err == nil && len(member) == 1 && rand.IntN(2) == 0 {
			w.spoil("ZREM", key, member[0])
			return
		}
		if kind != "workers" && kind != "claims" && kind != "forget" {
			w.spoil("ZADD", key, 5, fmt.Sprint("0-nobody", rand.IntN(100)))
		}
	case "children", "settled":
		w.spoil("LPOP", key)
	case "idem":
		if fields, err := w.Redis.HRandField(w.Context(), key, 1).Result(); err == nil && len(fields) == 1 {
			w.spoil("HDEL", key, fields[0])
		}
	case "queue":
		w.spoil("HINCRBY", key, []string{"running", "waiting", "bounded_all", "unbounded_any"}[rand.IntN(4)], rand.IntN(5)-2)
	case "wait":
		w.spoil("HINCRBY", key, []string{"settled", "ok", "bad"}[rand.IntN(3)], 1)
	case "queues":
		w.spoil("SPOP", key)
	}
}

// spoil sends a command, and logs it with its reply.
func (w *wreck) spoil(words ...any) {
	w.Logf("damage: %v: %v", words, w.Redis.Do(w.Context(), words...).Val())
}

func (w *wreck) damageSome(n int) {
	w.Helper()
	keys, err := w.Redis.Keys(w.Context(), w.Q.Root(0)+":*").Result()
	if err != nil {
		w.Fatal(err)
	}
	byKind := map[string][]string{}
	var kinds []string
	for _, key := range keys {
		kind, _, _ := strings.Cut(strings.TrimPrefix(key, w.Q.Root(0)+":"), ":")
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], key)
	}
	for range n {
		some := byKind[kinds[rand.IntN(len(kinds))]]
		w.damage(some[rand.IntN(len(some))])
	}
}

// repair repairs until an audit finds nothing.
func (w *wreck) repair() {
	w.Helper()
	var found []inspect.Finding
	for range 4 {
		var err error
		if found, err = inspect.Audit(w.Context(), w.Q); err != nil {
			w.Fatal(err)
		} else if len(found) == 0 {
			return
		}
		w.repaired += len(found)
		remedies, err := inspect.Repair(w.Context(), w.Q, found)
		if err != nil {
			w.Fatal(err)
		}
		for _, r := range remedies {
			if r.Left != "" && !strings.Contains(r.Left, "at work") {
				w.Errorf("%v is left: %s", r.Finding, r.Left)
			}
		}
	}
	w.Errorf("after four repairs: %v", found)
}

// drain runs what is left, and checks that everything ended once and nothing is lost.
func (w *wreck) drain() {
	w.Helper()
	w.Reap(reaper.Config{})
	if _, err := claim.Of(w.Q).Heartbeat(w.Context(), 0, "held", 0, 1, nil); err != nil {
		w.Fatal(err)
	}
	w.Run(w.hand(w.Another(), "agents", "leaves", "default").Run)
	await.Until(w, "all tasks have ended", func() bool { return w.AllEnded(w.ids) })
	for _, e := range w.Events(w.Q) { // of the children too
		if !slices.Contains(w.ids, e.ID) {
			w.ids = append(w.ids, e.ID)
		}
	}
	for id, r := range w.account(w.ids) {
		if r != nil && r.TimedOut && !r.CompletedAt.Equal(r.Deadline) {
			w.Errorf("%s ended at %v, want its deadline, %v", id, r.CompletedAt, r.Deadline)
		}
	}
}

// Whatever is damaged beside the records, a repair makes the namespace sound, and everything ends once.
func TestRandomDamageIsRepaired(t *testing.T) {
	n := harness.Times(2, 6, 100)
	for i := range n {
		w := newWreck(t)
		w.furnish()
		for try := 1; w.repaired < 2; try++ { // some damage leaves the namespace sound
			if try > 20 {
				t.Fatalf("20 damages gave %d findings", w.repaired)
			}
			w.damageSome(1 + i*5)
			w.repair()
			if t.Failed() {
				return
			}
		}
		w.drain()
		if t.Failed() {
			return
		}
	}
	t.Logf("sequences: %d", n)
}

// Entries are damaged and repaired while workers and reapers work on the same tasks: none ends twice, and none is lost.
func TestARepairOfANamespaceAtWork(t *testing.T) {
	w := newWreck(t)
	w.furnish()
	stop := []func(){w.Reap(reaper.Config{}), w.Reap(reaper.Config{}), w.Run(w.hand(w.Another(), "default", "agents").Run),
		w.Run(w.hand(w.Another(), "default", "leaves").Run)}
	for range harness.Times(10, 12, 300) {
		w.add(10)
		w.damageSome(5)
		found, err := inspect.Audit(t.Context(), w.Q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inspect.Repair(t.Context(), w.Q, found); err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range stop {
		end()
	}
	w.repair()
	w.drain()
}
