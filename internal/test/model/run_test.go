package model

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// TestModel plays random operations of several clients on Redis and on the model. Names are few
// and times are short, so that operations collide. It compares every answer and, after each step,
// the whole state and the events. The audit must find nothing.
func TestModel(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	unlessGiven("rapid.checks", fmt.Sprint(size.Times(60, 260, 20_000)))
	sequences, seen := playAll(t, redistest.Start(t).Client(t))
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%6d %s", seen[what], what)
	}
	if t.Failed() || *traceFile != "" {
		return
	}
	for of, reached := range map[int][]string{250: common, 20_000: rare} {
		for _, what := range reached {
			if sequences >= of && seen[what] == 0 {
				t.Errorf("%d sequences never reached: %s", sequences, what)
			}
		}
	}
}

// common is what 250 random sequences must reach: one in ten sequences or more reaches each of them, so that none is missing by
// chance. rare is what a long run must reach. If they are no longer reached, the test has become weaker.
var (
	common = []string{
		"task_completed ", "task_failed error", "task_failed rejected", "task_cancelled cancelled", "task_cancelled owner_ended",
		"task_timed_out attempt", "task_timed_out execution", "task_timed_out queue", "task_timed_out workflow",
		"attempt_timed_out", "task_lease_lost", "task_released", "task_held", "a held task is claimed", "queue_controlled", "a queue waits for its rate", "a hook runs",
		"a timer fires", "a token is taken", "a task has progress", "an attempt follows one that had progress", "suspend WAITING",
		"suspend READY", "suspend MORE", "suspend LOST", "suspend CHILD", "suspend INVALID", "suspend MISSING",
		"task_cancelled not_needed", "task_cancelled wait_timeout", "an end waits for its agent", "an agent was given ends twice",
		"a wait is open", "a wait is forming", "a wait is fired", "a limit outlives its attempt", "delete DELE", "delete LATE",
		"delete OWNE", "delete DRAI",
	}
	rare = []string{
		"task_failed failed", "deadline_near", "task_cancelling", "task_retried", "suspend DIVERGED", "suspend FOREIGN",
		"suspend UNKNOWN", "task_resumed satisfied all", "task_resumed satisfied any", "task_resumed satisfied settled",
		"task_resumed satisfied n_settled", "task_resumed satisfied any_ok", "task_resumed impossible any_ok",
		"task_resumed impossible fail_fast", "task_resumed timed_out all", "task_resumed timed_out any",
		"task_resumed satisfied collect", "task_resumed timed_out collect", "an agent waits for an agent that waits",
		"a woken agent's attempt continues in line", "a member gets its grace", "delete MISS", "delete LIVE",
	}
)

// The embedded server runs the same scripts in another implementation of Lua, on its own sorted
// sets and hashes.
func TestModelOnTheEmbeddedServer(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	given := flag.Lookup("rapid.checks").Value.String()
	defer flag.Set("rapid.checks", given)
	flag.Set("rapid.checks", fmt.Sprint(size.Times(5, 10, 1000)))
	playAll(t, redistest.Embedded(t).Client())
}

// playAll plays sequences on a server. It returns their number and what they reached.
func playAll(t *testing.T, rdb *redis.Client) (sequences int, seen map[string]int) {
	library := testclock.Library(t, rdb)
	unlessGiven("rapid.steps", "40")
	seen = map[string]int{}
	tr := openTrace(t, rdb)
	defer tr.close(t)
	rapid.Check(t, func(rt *rapid.T) {
		sequences++
		ctx := context.Background()
		rdb.FlushDB(ctx)
		q, err := queue.Open(ctx, rdb, queue.Config{Namespace: "model", Library: library, Events: "all", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			rt.Fatal(err)
		}
		p := &player{ctx: ctx, rdb: rdb, q: q, m: newModel(testclock.Start.UnixMilli()), told: map[string]int{}, seen: seen, parts: map[string]modelCall{}, trace: tr}
		q.Engine().OnReport(p.note)
		p.unfit = rapid.IntRange(0, 2).Draw(rt, "unfit") == 2
		rt.Repeat(p.operations())
	})
	t.Logf("sequences: %d", sequences)
	return sequences, seen
}

// operations returns what a player can do. Names with a lower number are drawn more often.
func (p *player) operations() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"00 enqueue": p.enqueue, "01 fetch": p.fetch, "02 suspend": p.suspend, "03 settle": p.settle, "04 advance": p.advance,
		"05 enqueue": p.enqueue, "06 fetch": p.fetch, "07 settle": p.settle, "08 sweep": p.sweep, "09 suspend": p.suspend,
		"10 repeat": p.repeat, "11 enqueue": p.enqueue, "12 cancel": p.cancel, "13 control": p.control, "14 heartbeat": p.heartbeat,
		"15 resolve": p.resolve, "16 define": p.define, "17 await": p.await, "18 drain": p.drain, "19 advance": p.advance,
		"20 leap": p.leap, "21 die": p.die, "22 remember": p.remember, "23 signal": p.signal, "24 outwait": p.outwait,
		"25 rest": p.rest, "26 delete": p.delete, "27 go back": p.goBack, "28 describe": p.describe, "": p.compare,
	}
}

// unlessGiven sets a flag that was not set on the command line.
func unlessGiven(name, value string) {
	if f := flag.Lookup(name); f != nil && f.Value.String() == f.DefValue {
		flag.Set(name, value)
	}
}

// player plays one sequence.
type player struct {
	ctx   context.Context
	rdb   *redis.Client
	q     *queue.Queue
	m     *model
	seq   int64
	calls []func(*rapid.T) // all calls, to be repeated

	unfit bool // workers have few handlers

	looks  int64                // when the reaper will sweep next
	behind int64                // how far the clock was set back since its last sweep
	parts  map[string]modelCall // the second part of a wait, by agent

	read string         // the newest event that was compared
	told map[string]int // counts of events that a task can have once: its end, its warning
	seen map[string]int // events by kind, over all sequences

	reports []string // what calls have reported since the last comparison

	named int // calls that have a name
	trace *trace
}

// newCall returns a name for a call. It is the same in each run of a seed.
func (p *player) newCall() string {
	p.named++
	return fmt.Sprint("call-", p.named)
}

func (p *player) same(t *rapid.T, what string, redis, model any) {
	p.trace.add(what, redis)
	if fmt.Sprint(redis) != fmt.Sprint(model) {
		t.Fatalf("%s: Redis returned %v, the model %v", what, redis, model)
	}
}

// run runs a script and returns its answer.
func (p *player) run(t *rapid.T, script string, args ...any) any {
	reply, err := p.q.Engine().Library().Run(p.ctx, p.rdb, script, p.q.Root(0), args...)
	if err != nil {
		t.Fatal(err)
	}
	plain, report, err := engine.ReadReport(0, reply)
	if err != nil {
		t.Fatal(err)
	}
	p.note(p.ctx, report)
	p.trace.add(script, plain)
	return plain
}

// note keeps what calls report until it is compared with the events.
func (p *player) note(_ context.Context, r engine.Report) {
	for _, task := range r.TimedOut {
		p.reports = append(p.reports, "task_timed_out "+task.ID+" "+task.Type)
	}
	for _, agent := range r.Woken {
		p.reports = append(p.reports, "task_resumed "+agent.ID+" "+agent.Reason)
	}
}

// play makes a call, and keeps it for a repeat.
func (p *player) play(t *rapid.T, call func(*rapid.T)) {
	p.calls = append(p.calls, call)
	p.m.losers = mostLosers
	call(t)
}

// repeat makes one of the newest calls again, as if its answer was lost.
func (p *player) repeat(t *rapid.T) {
	if ago := rapid.SampledFrom([]int{1, 1, 2, 3, 4}).Draw(t, "ago"); ago <= len(p.calls) {
		p.m.losers = mostLosers
		p.calls[len(p.calls)-ago](t)
	}
}

func (p *player) sweep(t *rapid.T) {
	swept, err := reaper.Sweep(p.ctx, p.q, 0, "r", 100, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	p.trace.add("sweep", fmt.Sprintf("%+v", swept))
	if len(swept.Errors) > 0 {
		t.Fatalf("sweep: %v", swept.Errors)
	}
	p.m.losers = mostLosers
	p.m.sweep()
	p.looks, p.behind = p.m.now+swept.Wait.Milliseconds(), 0
}

// rest sweeps until the reaper has nothing to do. It must get there, and then no wait may be out
// of time.
func (p *player) rest(t *rapid.T) {
	p.sweep(t)
	for sweeps := 1; p.looks == p.m.now; sweeps++ {
		if sweeps == 100 {
			t.Fatal("after 100 sweeps the next one is still due at once")
		}
		p.sweep(t)
	}
	for id, task := range p.m.tasks {
		if task.status == queue.Waiting && task.wait.ends != 0 && task.wait.ends < p.m.now {
			t.Fatalf("%s still waits, but its limit passed %d ms ago", id, p.m.now-task.wait.ends)
		}
	}
}

func (p *player) advance(t *rapid.T) {
	p.wait(t, rapid.SampledFrom([]int64{1, 1, 1, 2, 2, 3, 5, 10, 21}).Draw(t, "ms"))
}

// leap moves the clock past the ends of hooks, retentions and keys.
func (p *player) leap(t *rapid.T) {
	p.wait(t, rapid.SampledFrom([]int64{60_000, 300_000, 900_000, 86_400_000}).Draw(t, "ms"))
}

// goBack sets the clock of Redis back, as a correction does, or a failover to a host that is behind.
func (p *player) goBack(t *rapid.T) {
	ms := rapid.SampledFrom([]int64{1, 3, 10, 3000, 90_000}).Draw(t, "ms")
	p.behind += ms
	p.wait(t, -ms)
}

// die ends the lease of a worker, and another worker fetches what it held.
func (p *player) die(t *rapid.T) {
	p.wait(t, 21)
	p.compare(t)
	p.sweep(t)
	p.compare(t)
	p.fetch(t)
}

func (p *player) wait(t *rapid.T, ms int64) {
	p.m.now += ms
	if err := p.rdb.Set(p.ctx, p.q.Root(0)+":clock", p.m.now, 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// compare compares the whole state, and audits it.
func (p *player) compare(t *rapid.T) {
	s, err := audit.Read(p.ctx, p.q, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Odd = slices.DeleteFunc(s.Odd, func(key string) bool { return key == "clock" })
	for _, members := range s.Sets { // SMEMBERS has no order
		slices.Sort(members)
	}
	if p.trace != nil {
		p.trace.add(fmt.Sprintf("%+v", s))
	}
	if redis, model := formatSnapshot(s), formatModel(p.m); !slices.Equal(redis, model) {
		t.Fatalf("state\n%s", differences(redis, model))
	}
	if wrong := miscounted(s); wrong != nil {
		t.Fatal(wrong)
	}
	p.compareEvents(t, s)
	if err := p.trace.end(p.ctx); err != nil {
		t.Fatal(err)
	}
	p.count()
	p.everyReadyQueueIsWoken(t, s)
	p.reaperSweepsOnTime(t, s)
	if findings := s.Check(0); len(findings) > 0 {
		t.Fatalf("audit: %v\n%v", findings, formatSnapshot(s))
	}
}
