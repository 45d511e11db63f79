package luacount_test

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/luacount"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// more is how many further tasks a scene has when it is played again. With ten, one decimal shows the share of each exactly.
const more = 10

// scene is a call that is counted: prepare leads to it with n tasks, do makes it, and check looks at what it has changed. If
// single, n has no meaning.
type scene struct {
	name    string
	single  bool
	prepare func(s *stage, n int) []queue.Claim
	do      func(s *stage, n int, claims []queue.Claim)
	check   func(s *stage)
}

// scenes are the calls whose cost is in testdata/costs.txt.
var scenes = []scene{
	{name: "enqueue", do: func(s *stage, n int, _ []queue.Claim) { s.enqueue(list(n, plain)) }},
	{name: "enqueue with headers, idempotency key and delay", do: func(s *stage, n int, _ []queue.Claim) { s.enqueue(list(n, laden)) }},
	{name: "curfew_enqueue", single: true, do: func(s *stage, _ int, _ []queue.Claim) {
		s.call("curfew_enqueue", "render", "payload", payload, "timeout", "1h")
	}},
	{name: "curfew_enqueue_many", do: func(s *stage, n int, _ []queue.Claim) {
		object := `{"kind":"render","payload":{"text":"` + payload + `","pages":[]},"timeout":"1h"}`
		s.call("curfew_enqueue_many", "["+strings.Repeat(object+",", n-1)+object+"]")
	}},
	{name: "curfew_fetch", prepare: enqueued, do: func(s *stage, n int, _ []queue.Claim) {
		s.call("curfew_fetch", worker, "slots", n, "lease", "1h")
	}},
	{name: "curfew_settle", single: true, prepare: claimed, do: func(s *stage, _ int, claims []queue.Claim) {
		s.call("curfew_settle", worker, claims[0].ID, claims[0].Epoch, "result", "done")
	}},
	{name: "curfew_heartbeat", prepare: claimed, do: func(s *stage, _ int, claims []queue.Claim) {
		held := make([]string, len(claims))
		for i, c := range claims {
			held[i] = fmt.Sprintf("%s=%d", c.ID, c.Epoch)
		}
		s.call("curfew_heartbeat", worker, "claims", strings.Join(held, " "), "lease", "1h")
	}},
	{name: "fetch", prepare: enqueued, do: func(s *stage, n int, _ []queue.Claim) { s.fetch(n, n) }},
	{name: "fetch of nothing", single: true, do: func(s *stage, _ int, _ []queue.Claim) { s.fetch(50, 0) }},
	{name: "settle", prepare: claimed, do: func(s *stage, _ int, claims []queue.Claim) { s.settle(claims, 0) }},
	{name: "settle and fetch", prepare: func(s *stage, n int) []queue.Claim {
		claims := claimed(s, n)
		enqueued(s, n)
		return claims
	}, do: func(s *stage, n int, claims []queue.Claim) { s.settle(claims, n) }},
	{name: "heartbeat", prepare: claimed, do: func(s *stage, _ int, claims []queue.Claim) {
		held := make([]claim.Held, len(claims))
		for i, c := range claims {
			held[i] = claim.Held{ID: c.ID, Epoch: c.Epoch}
		}
		stops, err := claim.Of(s.q).Heartbeat(s.t.Context(), 0, worker, time.Hour, 0, held)
		s.want(0, len(stops), err)
	}},
	{name: "cancel", prepare: enqueued, do: func(s *stage, n int, claims []queue.Claim) {
		ids := make([]string, len(claims))
		for i, c := range claims {
			ids[i] = c.ID
		}
		ended, err := s.q.CancelAll(s.t.Context(), ids, "not needed")
		s.want(n, len(ended), err)
	}},
	{name: "sweep of timeouts", prepare: func(s *stage, n int) []queue.Claim {
		s.enqueue(list(n, due))
		s.must(s.counter.Advance(time.Minute))
		return nil
	}, do: func(s *stage, n int, _ []queue.Claim) { s.sweep(n) }},
	{name: "sweep of nothing", single: true, do: func(s *stage, _ int, _ []queue.Claim) { s.sweep(0) }},
	{name: "suspend with children", prepare: func(s *stage, _ int) []queue.Claim { return claimed(s, 1) },
		do: func(s *stage, n int, claims []queue.Claim) { s.suspend(claims[0], n) }},
	{name: "settle of the last child", prepare: func(s *stage, n int) []queue.Claim {
		s.suspend(claimed(s, 1)[0], n)
		children := s.fetch(n, n)
		if n > 1 {
			s.settle(children[:n-1], 0)
		}
		return children[n-1:]
	}, do: func(s *stage, _ int, claims []queue.Claim) { s.settle(claims, 0) },
		check: func(s *stage) { s.fetch(1, 1) }}, // the agent
}

func enqueued(s *stage, n int) []queue.Claim { return s.enqueue(list(n, plain)) }

func claimed(s *stage, n int) []queue.Claim {
	enqueued(s, n)
	return s.fetch(n, n)
}

const worker = "w1"

var payload = strings.Repeat("x", 100)

func list(n int, task queue.Task) []queue.Task {
	tasks := make([]queue.Task, n)
	for i := range tasks {
		tasks[i] = task
		if task.IdempotencyKey != "" {
			tasks[i].IdempotencyKey += strconv.Itoa(10 + i)
		}
	}
	return tasks
}

var (
	plain = queue.Task{Kind: "render", Payload: []byte(payload), Timeout: time.Hour}
	due   = queue.Task{Kind: "render", Payload: []byte(payload), Timeout: time.Second}
	laden = queue.Task{Kind: "render", Payload: []byte(payload), Timeout: time.Hour, Delay: time.Minute, IdempotencyKey: "order-",
		Headers: map[string]string{"content-type": "application/json", "tenant": "seven"}}
)

// stage is a new namespace whose calls are counted.
type stage struct {
	t       *testing.T
	counter *luacount.Counter
	q       *queue.Queue
	seq     int64 // of the last fetch
}

// play returns the cost of a scene with n tasks, on a server without keys. A task has gone through the namespace before, so
// that its keys exist.
func (sc *scene) play(t *testing.T, in *theatre, n int) luacount.Cost {
	t.Helper()
	s := &stage{t: t, counter: in.counter}
	s.must(s.counter.Redis.FlushAll(t.Context()).Err())
	s.must(s.counter.SetTime(luacount.Start))
	var err error
	s.q, err = queue.Open(t.Context(), s.counter.Redis, queue.Config{Namespace: "count", Partitions: 1, Library: in.library,
		Logger: slog.New(slog.DiscardHandler)})
	s.must(err)
	s.settle(claimed(s, 1), 0)
	var tasks []queue.Claim
	if sc.prepare != nil {
		tasks = sc.prepare(s, n)
	}
	cost := s.counter.Count(func() { sc.do(s, n, tasks) })
	if sc.check != nil {
		sc.check(s)
	}
	return cost
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// want fails the test unless a call has done its work on n tasks: other work is not the scene.
func (s *stage) want(n, got int, err error) {
	s.t.Helper()
	s.must(err)
	if got != n {
		s.t.Fatalf("a call worked on %d tasks, want %d", got, n)
	}
}

func (s *stage) enqueue(tasks []queue.Task) []queue.Claim {
	s.t.Helper()
	receipts, err := s.q.EnqueueAll(s.t.Context(), tasks)
	var added []queue.Claim
	for _, r := range receipts {
		if r.New {
			added = append(added, queue.Claim{ID: r.ID})
		}
	}
	s.want(len(tasks), len(added), err)
	return added
}

// call calls a function for programs in other languages.
func (s *stage) call(function string, args ...any) {
	s.t.Helper()
	s.must(s.counter.Redis.FCall(s.t.Context(), function, []string{s.q.Root(0)}, args...).Err())
}

// ask asks for n tasks.
func (s *stage) ask(n int) claim.Ask {
	s.seq++
	return claim.Ask{N: n, Seq: s.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "default", N: n}}}
}

// fetch asks for n tasks and gets the number that is wanted.
func (s *stage) fetch(n, want int) []queue.Claim {
	s.t.Helper()
	reply, err := claim.Of(s.q).Fetch(s.t.Context(), 0, worker, s.ask(n))
	s.want(want, len(reply.Claims), err)
	return reply.Claims
}

// settle completes tasks, and fetches n others.
func (s *stage) settle(claims []queue.Claim, n int) {
	s.t.Helper()
	outcomes := make([]queue.Outcome, len(claims))
	for i, c := range claims {
		outcomes[i] = queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete, Result: []byte("done")}
	}
	var ask claim.Ask
	if n > 0 {
		ask = s.ask(n)
	}
	reply, err := claim.Of(s.q).Settle(s.t.Context(), 0, worker, queue.NewCall(), outcomes, ask)
	done := 0
	for _, v := range reply.Verdicts {
		if v.Accepted() {
			done++
		}
	}
	s.want(len(claims), done, err)
	s.want(n, len(reply.Claims), nil)
}

// sweep ends n tasks that are late.
func (s *stage) sweep(n int) {
	s.t.Helper()
	swept, err := reaper.Sweep(s.t.Context(), s.q, 0, "r1", 100, 500*time.Millisecond)
	s.want(n, swept.TimedOut, err)
}

// suspend makes an agent create n children and wait for all of them.
func (s *stage) suspend(agent queue.Claim, n int) {
	s.t.Helper()
	asks := claim.Suspension{Agent: agent.ID, Epoch: agent.Epoch, Worker: worker, Wait: claim.Wait{Entry: 1, Digest: "wait", Label: "all"}}
	for i := range n {
		id := agent.ID + "." + strconv.Itoa(10+i)
		asks.Children = append(asks.Children, queue.Task{ID: id, Kind: "render", Payload: []byte(payload)})
		asks.Wait.Members = append(asks.Wait.Members, claim.Member{ID: id})
	}
	outcome, err := claim.Of(s.q).Suspend(s.t.Context(), asks)
	s.must(err)
	if outcome != nil {
		s.t.Fatalf("the agent does not wait: %+v", outcome)
	}
}
