package requirements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/eventlog"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// play is a stage with a real worker and a clock that moves only when every handler waits for
// it. So a test meets an instant of a document to the millisecond, and a minute takes no time.
type play struct {
	*stage
	w    *worker.Worker
	stop func() // stops the worker; nil while none runs

	mu     sync.Mutex // guards stage.now, which handlers read, and asleep
	asleep map[string]sleeper
}

// sleeper is a handler that waits for the clock.
type sleeper struct {
	until time.Time
	woken chan struct{}
}

// never is longer than any play.
const never = 10 * 365 * 24 * time.Hour

func newPlay(t *testing.T) *play { return newPlayOn(t, redistest.Shared(t).Client(t)) }

func newPlayOn(t *testing.T, rdb redis.UniversalClient) *play {
	s := open(t, rdb, queue.Config{Library: testclock.LibraryWith(t, rdb, untimed(t)), Events: "all"}, testclock.Start)
	p := &play{stage: s, asleep: map[string]sleeper{}}
	p.w = p.another()
	return p
}

// untimed returns the files of the calls that return claims, with a time of the claim that is 20 years too early. A worker ends the
// context of a handler by its own clock, which goes on when the clock of a play stands still. Now it does so after 20 years, so that a
// play may take long.
func untimed(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"call/fetch", "call/settle"} {
		text, err := os.ReadFile("../../../lua/" + name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		const reply = "tell.reply(tx, {tx.at,"
		if strings.Count(string(text), reply) != 1 {
			t.Fatalf("%s does not have %s", name, reply)
		}
		files[name] = strings.ReplaceAll(string(text), reply, fmt.Sprintf("tell.reply(tx, {tx.at - %d,", 2*never.Milliseconds()))
	}
	return files
}

// another returns one more worker. Its lease outlasts every play, and it has no reaper.
func (p *play) another() *worker.Worker {
	w := worker.New(p.q, worker.Config{Concurrency: 50, Lease: 10 * never, Beat: 5 * time.Second, NoReaper: true,
		Queues: map[string]int{"default": 1, "agents": 1}})
	w.Use(func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, payload []byte) ([]byte, error) {
			return next(agentwait.WithClock(ctx, p.clock), payload)
		}
	})
	p.cast(w)
	return w
}

// start runs the worker.
func (p *play) start() {
	stop := p.run(p.w)
	p.stop = func() { stop(); p.stop = nil }
}

// sleep is like time.Sleep, on the clock of the stage. It returns when the handler's context ends.
func (p *play) sleep(ctx context.Context, d time.Duration) error {
	id := worker.Info(ctx).ID
	p.mu.Lock()
	s := sleeper{p.now.Add(d), make(chan struct{})}
	p.asleep[id] = s
	p.mu.Unlock()
	select {
	case <-s.woken:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.asleep[id] == s {
			delete(p.asleep, id)
		}
		return context.Cause(ctx)
	}
}

// rest waits until nothing happens any more: every running handler is asleep.
func (p *play) rest() {
	p.Helper()
	await.Until(p.T, "every handler is asleep", func() bool {
		sleeping := p.sleeping()
		stats, err := p.q.Stats(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		running := int64(0)
		for _, line := range stats.Queues {
			running += line.Running
			if p.stop != nil && line.Ready > 0 && !line.Paused && (line.Queue == "default" || line.Queue == "agents") {
				return false
			}
		}
		// Counted twice, since a counted sleeper may have ended and made room for another task.
		return running == sleeping && running == p.sleeping()
	})
}

// sleeping returns how many running tasks are asleep.
func (p *play) sleeping() (n int64) {
	p.Helper()
	p.mu.Lock()
	ids := slices.Collect(maps.Keys(p.asleep))
	p.mu.Unlock()
	records, err := p.q.GetAll(p.Context(), ids)
	if err != nil {
		p.Fatal(err)
	}
	for _, r := range records {
		if r != nil && r.Status == queue.Running {
			n++
		}
	}
	return n
}

// clock returns the time of the play.
func (p *play) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// pass moves the clock by a duration. Everything due until then happens at its own instant.
func (p *play) pass(d time.Duration) {
	p.Helper()
	p.rest()
	for until := p.now.Add(d); p.step(until); {
		p.rest()
	}
}

// end moves the clock until a task has ended, and returns its record.
func (p *play) end(id string) *queue.Record {
	p.Helper()
	for range 10_000 {
		p.rest()
		if r := p.record(id); r.Status.Ended() {
			p.swept() // ends its children
			return r
		}
		if !p.step(p.now.Add(never)) {
			break
		}
	}
	p.Fatalf("task %s does not end: %v", id, p.record(id).Fields)
	return nil
}

// step moves the clock to the next instant at which something is due, and returns true. If
// nothing is due until last, it moves the clock to last and returns false.
func (p *play) step(last time.Time) bool {
	p.Helper()
	next := p.swept()
	p.mu.Lock()
	for _, s := range p.asleep {
		if s.until.Before(next) {
			next = s.until
		}
	}
	more := !next.After(last)
	if !more {
		next = last
	}
	p.now = next
	testclock.Set(p, p.rdb, p.q.Root(0), p.now)
	for id, s := range p.asleep {
		if !s.until.After(p.now) {
			delete(p.asleep, id)
			close(s.woken)
		}
	}
	p.mu.Unlock()
	p.swept()
	return more
}

// swept sweeps until nothing is due, and returns the next instant at which something is.
func (p *play) swept() time.Time {
	p.Helper()
	for range 1000 {
		swept, err := reaper.Sweep(p.Context(), p.q, 0, "r", 100, never)
		if err != nil {
			p.Fatal(err)
		}
		if len(swept.Errors) > 0 {
			p.Fatalf("sweep: %v", swept.Errors)
		}
		if swept.Wait > 0 {
			return p.now.Add(swept.Wait)
		}
	}
	p.Fatal("1000 sweeps, and still something is due")
	return time.Time{}
}

// agent enqueues an agent with its input, in the queue agents.
func (p *play) agent(kind string, in any) string {
	p.Helper()
	return p.task(queue.Task{Kind: kind}, in)
}

// task enqueues a task with its input, in the queue agents.
func (p *play) task(task queue.Task, in any) string {
	p.Helper()
	payload, err := json.Marshal(in)
	if err != nil {
		p.Fatal(err)
	}
	task.Payload, task.Queue = payload, "agents"
	return p.enqueue(task)
}

// act runs one agent with the given code to its end, and returns its record.
func (p *play) act(code func(a *agentwait.Agent) (string, error)) *queue.Record {
	p.Helper()
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) { return code(a) })
	p.start()
	return p.end(p.agent("agent", nil))
}

// gives checks that a task has completed with a result.
func (p *play) gives(r *queue.Record, want any) {
	p.Helper()
	text, err := json.Marshal(want)
	if err != nil {
		p.Fatal(err)
	}
	if r.Status != queue.Completed || !sameJSON(string(r.Result), string(text)) {
		p.Fatalf("task %s (%s) is %s: %s%s, want COMPLETED: %s", r.ID, r.Kind, r.Status, r.Result, r.Error, text)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// at formats the time from one instant to another, as "1.5s".
func at(from, then time.Time) string { return then.Sub(from).String() }

// children returns the children of an agent that are named 1, 2 and so on.
func (p *play) children(agent string) (all []*queue.Record) {
	p.Helper()
	for n := 1; ; n++ {
		r, err := p.q.Get(p.Context(), fmt.Sprintf("%s.%d", agent, n))
		if errors.Is(err, refusal.ErrNotFound) {
			return all
		} else if err != nil {
			p.Fatal(err)
		}
		all = append(all, r)
	}
}

// emitted returns the events of a kind so far, in order.
func (s *stage) emitted(kind string) (all []map[string]any) {
	s.Helper()
	messages, err := s.rdb.XRange(s.Context(), s.q.EventsKey(0), "-", "+").Result()
	if err != nil {
		s.Fatal(err)
	}
	for _, m := range eventlog.Events(messages...) {
		if m["kind"] == kind {
			all = append(all, m)
		}
	}
	return all
}

// statuses formats the statuses of an agent's children, in order, with the reasons of those that
// were cancelled: "COMPLETED CANCELLED:not_needed".
func (p *play) statuses(agent string) string {
	p.Helper()
	var words []string
	for _, r := range p.children(agent) {
		word := string(r.Status)
		if r.Status == queue.Cancelled {
			word += ":" + string(r.Reason)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
