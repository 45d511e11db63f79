package hostile

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

const root = "h:{0}"

// large is a payload that is stored in its own key.
var large = strings.Repeat("p", 1000)

// stage is a server with a namespace that has tasks in every state, and can be restored.
type stage struct {
	rdb     *redis.Client
	library *lua.Library
	scripts map[string]string // SHA-1 of each call as a script
	way     string            // the command that try uses: fcall or evalsha
	q       *queue.Queue
	keys    []string
	dumps   []string // DUMP of each key
	text    string   // redistest.Dump of all keys
	seq     int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	// A call must not be repeated because the machine is busy, and one that hangs must be given up.
	rdb := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, MaxRetries: -1, ReadTimeout: await.Patience})
	t.Cleanup(func() { rdb.Close() })
	s := &stage{rdb: rdb, library: testclock.Library(t, rdb), scripts: map[string]string{}, way: "fcall"}
	for _, name := range s.library.Names() {
		s.scripts[name] = rdb.ScriptLoad(context.Background(), s.library.Source(name)).Val()
	}
	facade := testclock.Facade(t)
	if err := rdb.FunctionLoad(context.Background(), facade.Text()).Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range facade.Names() {
		s.scripts[name] = rdb.ScriptLoad(context.Background(), facade.Script(name)).Val()
	}
	q, err := queue.Open(context.Background(), rdb, queue.Config{Namespace: "h", Library: s.library})
	if err != nil {
		t.Fatal(err)
	}
	s.q = q
	s.fill(t)
	s.keep(t)
	return s
}

// handle is the name of a call's function: those of the façade have their own.
func (s *stage) handle(call string) string {
	if strings.HasPrefix(call, "curfew_") {
		return call
	}
	return s.library.Handle(call)
}

// call makes a call that must be accepted.
func (s *stage) call(t *testing.T, name string, args ...any) any {
	t.Helper()
	reply, err := s.library.Run(context.Background(), s.rdb, name, root, args...)
	if err != nil || strings.Contains(fmt.Sprint(reply), "INVALID") {
		t.Fatalf("%s %.200q = %v, %v", name, args, reply, err)
	}
	return reply
}

// task enqueues a task, which must be accepted.
func (s *stage) task(t *testing.T, fields ...any) {
	t.Helper()
	fields = append(fields, "kind", "k", "timeout_ms", "600000")
	if got := wire.Answers([][]any{fields}, s.call(t, "enqueue", wire.Tasks(fields)...)); got[0][0] != "OK" {
		t.Fatalf("enqueue %q = %v", fields, got)
	}
}

// take fetches a task of a queue for w1.
func (s *stage) take(t *testing.T, id, line string) {
	t.Helper()
	s.seq++
	if got := fmt.Sprint(s.call(t, "fetch", "w1", s.seq, 1, 600000, 0, line, 1)); !strings.Contains(got, id) {
		t.Fatalf("fetch of %s = %s", id, got)
	}
}

// fill creates tasks in every state and on every clock, and agents.
func (s *stage) fill(t *testing.T) {
	t.Helper()
	s.task(t, "id", "0-e1", "queue", "hit")
	s.call(t, "cancel", "c0", "", "", "0-e1")
	s.task(t, "id", "0-r1", "queue", "hit", "payload", large, "attempt_timeout_ms", "20000", "max_retries", "2")
	s.take(t, "0-r1", "hit")
	s.task(t, "id", "0-r2", "queue", "other")
	s.take(t, "0-r2", "other")
	s.task(t, "id", "0-r3", "queue", "other")
	s.take(t, "0-r3", "other")
	s.task(t, "id", "0-g1", "queue", "other", "cancel_grace_ms", "30000")
	s.take(t, "0-g1", "other")
	s.call(t, "cancel", "c1", "why", "", "0-g1")
	s.task(t, "id", "0-r1.c", "queue", "other")
	s.task(t, "id", "0-w1", "queue", "draining")
	s.take(t, "0-w1", "draining")
	s.task(t, "id", "0-w1.c", "queue", "draining")
	s.call(t, "settle", "w1", "c2", 1, "0-w1", 1, "complete", large)
	s.task(t, "id", "0-p1", "queue", "hit", "payload", large, "queue_timeout_ms", "10000", "idempotency_key", "k1")
	s.task(t, "id", "0-p2", "queue", "other")
	s.task(t, "id", "0-d1", "queue", "hit", "delay_ms", "5000")
	s.task(t, "id", "0-o1", "role", "promise", "hook_success", "h hit")
	s.task(t, "id", "0-o2", "role", "promise")
	s.task(t, "id", "0-t1", "role", "timer", "delay_ms", "5000")
	s.task(t, "id", "0-s1", "queue", "slow")
	s.task(t, "id", "0-s2", "queue", "slow")
	s.call(t, "control", "slow", "rate", "1", "per_ms", "60000", "burst", "1")
	s.call(t, "control", "hit", "max_running", "9")
	s.take(t, "0-s1", "slow")
	s.call(t, "control", "slow", "max_length", "1")
	for _, id := range []string{"0-a1", "0-a2"} {
		s.task(t, "id", id, "queue", "agents")
		s.take(t, id, "agents")
		s.task(t, "id", id+".c", "role", "promise")
		s.call(t, "remember", id, 1, "w1", 0, 1, 1, "first")
	}
	s.call(t, "suspend", suspension("0-a2", "c3")...)
	s.call(t, "define", "kd", "timeout_ms", "5000")
	s.call(t, "heartbeat", "w2", 600000, 0)
}

// suspension returns the arguments of a suspend: an agent waits for an existing child and a new one.
func suspension(agent, call string) []any {
	return append([]any{agent, "1", "w1", call, 6, "entry", "5", "digest", "d", "label", "l", "mode", "all", "limit_ms", "10000", "on_pending", "cancel",
		2, agent + ".c", "2000", "oobbb", agent + ".n", "", "",
		1, "state", "s", 1, "4", "x"},
		wire.Tasks([]any{"id", agent + ".n", "kind", "k", "queue", "agents", "timeout_ms", "60000"})...)
}

// keep stores all keys, for restore.
func (s *stage) keep(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	var err error
	if s.keys, err = s.rdb.Keys(ctx, "*").Result(); err != nil {
		t.Fatal(err)
	}
	for _, key := range s.keys {
		s.dumps = append(s.dumps, s.rdb.Dump(ctx, key).Val())
	}
	s.text = redistest.Dump(t, s.rdb, "")
	if found, err := inspect.Audit(ctx, s.q); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
}

// restore replaces all data with those that keep stored.
func (s *stage) restore(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.FlushDB(ctx)
		for i, key := range s.keys {
			p.Restore(ctx, key, 0, s.dumps[i])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
