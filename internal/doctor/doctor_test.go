package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/operate"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// client returns a client with the options that the command uses.
func client(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := queue.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func examineAll(t *testing.T, rdb redis.UniversalClient, c Config) []Finding {
	t.Helper()
	c.Namespace = "shop"
	if c.Access == "" {
		c.Access = queue.AccessAll
	}
	found, err := Examine(t.Context(), rdb, c)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// about returns the findings about a subject as lines.
func about(found []Finding, subject string) string {
	var lines []string
	for _, f := range found {
		if f.Subject == subject {
			lines = append(lines, fmt.Sprintf("%s %s: %s", f.Level, f.Text, f.Cure))
		}
	}
	return strings.Join(lines, "\n")
}

// sane starts a server without a problem, with a namespace and a reaper's turn.
func sane(t *testing.T) (*redistest.Server, redis.UniversalClient, *queue.Queue) {
	t.Helper()
	server := redistest.Start(t, "--appendonly", "yes", "--maxmemory", "1gb")
	rdb := client(t, "redis://"+server.Addr)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	s, err := operate.Connect(t.Context(), rdb)
	if err != nil {
		t.Fatal(err)
	}
	if did := s.Load(t.Context(), false); did[0].Err != nil {
		t.Fatal(did[0].Err)
	}
	do(t, rdb, "HSET", q.Root(0), "turn_until", time.Now().Add(time.Hour).UnixMilli())
	return server, rdb, q
}

func do(t *testing.T, rdb redis.UniversalClient, words ...any) {
	t.Helper()
	if err := rdb.Do(t.Context(), words...).Err(); err != nil {
		t.Fatal(words, err)
	}
}

func TestASoundServerHasNoProblem(t *testing.T) {
	_, rdb, _ := sane(t)
	found := examineAll(t, rdb, Config{})
	if Worst(found) != OK {
		t.Errorf("%+v", found)
	}
	for _, subject := range []string{"server", "eviction", "memory", "persistence", "replicas", "clock", "slow calls", "functions", "namespace", "rights", "reaper", "due work", "calls", "limits", "queues"} {
		if about(found, subject) == "" {
			t.Errorf("nothing is said of %s", subject)
		}
	}
	if quick := examineAll(t, rdb, Config{Quick: true}); Worst(quick) != OK || len(quick) >= len(found) {
		t.Errorf("quick: %+v", quick)
	}
}

func TestProblemsAreFound(t *testing.T) {
	_, rdb, q := sane(t)
	config := func(name, value string) func() {
		return func() { do(t, rdb, "CONFIG", "SET", name, value) }
	}
	worker := func(about string) {
		if _, err := claim.Of(q).Heartbeat(t.Context(), 0, "w1", time.Hour, 0, nil); err != nil {
			t.Fatal(err)
		}
		if err := claim.Of(q).Describe(t.Context(), 0, "w1", queue.WorkerRunning, about); err != nil {
			t.Fatal(err)
		}
	}
	if got := about(examineAll(t, rdb, Config{}), "limits"); got != "ok every task has a deadline: " {
		t.Errorf("without tasks: %q", got)
	}
	for _, row := range []struct {
		claim, subject string
		cause, end     func()
		want           string
	}{
		{"eviction of a full Redis", "eviction", config("maxmemory-policy", "allkeys-lru"), config("maxmemory-policy", "noeviction"), "fail maxmemory-policy is allkeys-lru: a full Redis evicts"},
		{"memory is nearly full", "memory", config("maxmemory", "1mb"), config("maxmemory", "1gb"), "(maxmemory) are used: new tasks are refused"},
		{"no limit of memory", "memory", config("maxmemory", "0"), config("maxmemory", "1gb"), "ok "},
		{"an eviction policy that does nothing yet", "eviction", func() { config("maxmemory", "0")(); config("maxmemory-policy", "volatile-ttl")() }, func() { config("maxmemory", "1gb")(); config("maxmemory-policy", "noeviction")() }, "warn maxmemory-policy is volatile-ttl"},
		{"changes are not kept", "persistence", config("appendonly", "no"), config("appendonly", "yes"), "warn appendonly is no"},
		{"no functions", "functions", func() { do(t, rdb, "FUNCTION", "FLUSH") }, func() {}, "warn the functions for programs in other languages are not loaded: run `curfew functions load`"},
		{"a library of another program", "functions", func() {
			do(t, rdb, "FUNCTION", "FLUSH")
			do(t, rdb, "FUNCTION", "LOAD", "#!lua name=curfew\nredis.register_function('theirs', function() return 1 end)")
		}, func() { do(t, rdb, "FUNCTION", "FLUSH") }, "warn another program has a library named curfew"},
		{"a library of another version", "functions", func() {
			do(t, rdb, "FUNCTION", "LOAD", "#!lua name=curfew_0123456789ab\nlocal files = {}\nredis.register_function('curfew_0123456789ab_x', function() return 1 end)")
		}, func() { do(t, rdb, "FUNCTION", "FLUSH") }, "ok 1 library of programs in Go of other versions"},
		{"a slow script", "slow calls", func() {
			do(t, rdb, "CONFIG", "SET", "slowlog-log-slower-than", "10000")
			do(t, rdb, "SLOWLOG", "RESET") // an earlier call may have been slow
			do(t, rdb, "EVAL", "local i = 0 while i < 3e7 do i = i + 1 end return 1", 0)
		}, func() { do(t, rdb, "SLOWLOG", "RESET") }, "1 function or script is in the slow log of the last hour"},
		{"a deadline that nobody enforced", "due work", func() {
			do(t, rdb, "ZADD", q.Root(0)+":deadlines", time.Now().Add(-time.Minute).UnixMilli(), "0-x")
		}, func() { do(t, rdb, "DEL", q.Root(0)+":deadlines") }, "fail 1 instant is more than 1s past, the oldest for 1m"},
		{"a limit that nobody enforced", "due work", func() {
			do(t, rdb, "ZADD", q.Root(0)+":limits", time.Now().Add(-2*time.Second).UnixMilli(), "0-x")
		}, func() { do(t, rdb, "DEL", q.Root(0)+":limits") }, "fail 1 instant is more than 1s past"},
		{"no reaper, and no tasks", "reaper", func() { do(t, rdb, "HDEL", q.Root(0), "turn_until") }, func() {}, "warn no reaper runs in partition 0"},
		{"no reaper, and tasks", "reaper", func() { queuetest.Enqueue(t, q, queue.Task{Queue: "emial", Kind: "letter", Timeout: time.Hour}) }, func() {
			do(t, rdb, "HSET", q.Root(0), "turn_until", time.Now().Add(time.Hour).UnixMilli())
		}, "fail no reaper runs in partition 0, so deadlines are not kept: run `curfew reap`"},
		{"tasks and no worker", "queues", func() {}, func() {}, "warn 1 task is in line in queue emial, and no worker lives: run one that serves it"},
		{"tasks in a queue that is not served", "queues", func() { worker(`{"queues":{"email":1},"kinds":["letter"]}`) }, func() {}, "warn 1 task is in line in queue emial, and no live worker serves it: run one that serves it, or enqueue to email"},
		{"tasks in a queue that a worker may serve", "queues", func() { worker(`no JSON`) }, func() { worker(`{"queues":{"email":1},"kinds":["letter"]}`) }, "ok 1 worker,"},
		{"tasks of a kind that nobody handles", "kinds", func() { bounce(t, q, queue.ClassNoHandler) }, func() {}, "warn no live worker of queue email handles the kind leter: 1 task is held: run one that does, or enqueue the kind letter"},
		{"agents whose code has changed", "agents", func() { bounce(t, q, queue.ClassDiverged) }, func() {}, "warn the code of kind leter in queue email has changed so that no worker can continue 1 agent: run a program with code that fits"},
		{"a paused queue", "queues", func() {
			if _, err := q.Pause(t.Context(), "emial"); err != nil {
				t.Fatal(err)
			}
		}, func() {}, "warn 1 task is in line in queue emial, and it is paused: resume it"},
		{"a full queue", "queues", func() {
			if _, err := q.LimitLength(t.Context(), "emial", 1); err != nil {
				t.Fatal(err)
			}
		}, func() {}, "warn queue emial is full: 1 task is in line, and its maximum length is 1, so new tasks are refused: run more workers, or raise it with `curfew queue limit emial --length`"},
		{"a full queue that has refused tasks", "queues", func() {
			if _, err := q.Enqueue(t.Context(), queue.Task{Queue: "emial", Kind: "letter"}); !errors.Is(err, refusal.ErrQueueFull) {
				t.Fatal(err)
			}
		}, func() {}, "so new tasks are refused (1 so far): run more workers"},
		{"tasks without a limit", "limits", func() {
			queuetest.Enqueue(t, q, queue.Task{Delay: time.Hour})
			queuetest.Enqueue(t, q, queue.Task{Timer: true, Delay: time.Hour})
			queuetest.Enqueue(t, q, queue.Task{Promise: true})
		}, func() {}, "ok tasks without a deadline of their own: 5; without any, as `curfew ls --unbounded` lists them: 3"},
		{"tasks whose worker died", "workers", func() { die(t, rdb, q) }, func() {}, "warn workers died while they ran the kind leter of queue email: 1 task is held apart, and may be the cause:" +
			" read the logs of the dead workers; `curfew ls --queue email --kind leter --status PENDING` lists the tasks"},
		{"a partition is missing", "namespace", func() { do(t, rdb, "HSET", q.Root(0), "partitions", 2) }, func() { do(t, rdb, "HSET", q.Root(0), "partitions", 1) }, "fail shop lacks 1 of its 2 partitions: create them with `curfew namespace create shop`"},
		{"records of another version", "namespace", func() { do(t, rdb, "HSET", q.Root(0), "version", 99) }, func() { do(t, rdb, "HSET", q.Root(0), "version", 2) }, "fail shop has records of version 99, which this program does not know"},
	} {
		row.cause()
		if got := about(examineAll(t, rdb, Config{}), row.subject); !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.claim, got, row.want)
		}
		row.end()
	}
	if found, err := Examine(t.Context(), rdb, Config{Namespace: "shpo", Access: queue.AccessAll}); err != nil || !strings.Contains(about(found, "namespace"), "fail there is no namespace shpo") {
		t.Errorf("another namespace: %+v, %v", found, err)
	}
	if n := rdb.Exists(t.Context(), "shpo:{0}").Val(); n != 0 {
		t.Error("a mistyped namespace was created")
	}
}

// A container's health check has ten seconds, also on a server that is far away, in a namespace with many partitions.
func TestAQuickExaminationReadsManyPartitionsInOneRoundTrip(t *testing.T) {
	_, rdb, first := sane(t)
	many := queuetest.Open(t, rdb, queue.Config{Namespace: "many", Partitions: 50})
	do(t, rdb, "ZADD", many.Root(7)+":deadlines", time.Now().Add(-time.Minute).UnixMilli(), "7-x")
	do(t, rdb, "ZADD", many.Root(42)+":limits", time.Now().Add(-time.Hour).UnixMilli(), "42-x", time.Now().Add(-time.Minute).UnixMilli(), "42-y")
	do(t, rdb, "SET", many.Root(43)+":limits", "of another type")
	do(t, rdb, "HSET", many.Root(44), "turn_until", time.Now().Add(time.Hour).UnixMilli())
	trips := &roundTrips{}
	rdb.AddHook(trips)
	took := func(q *queue.Queue) int64 {
		trips.n.Store(0)
		found, err := Examine(t.Context(), rdb, Config{Namespace: q.Namespace(), Access: queue.AccessAll, Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		if q == many && (!strings.HasPrefix(about(found, "due work"), "fail 3 instants are more than 1s past, the oldest for 1h") || !strings.HasPrefix(about(found, "reaper"), "fail no reaper runs in 49 partitions")) {
			t.Errorf("%+v", found)
		}
		return trips.n.Load()
	}
	one, all := took(first), took(many)
	if all > one+10 {
		t.Errorf("%d round trips for 50 partitions, and %d for one", all, one)
	}
}

// roundTrips is a redis.Hook that counts what is sent and awaited, except functions: a namespace is opened with one in each partition,
// and offers them in the background.
type roundTrips struct{ n atomic.Int64 }

func (r *roundTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "fcall" && cmd.Name() != "function" {
			r.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.n.Add(1)
		return next(ctx, cmds)
	}
}

// bounce makes a worker give a task back that it cannot run.
func bounce(t *testing.T, q *queue.Queue, class queue.Class) {
	t.Helper()
	c := take(t, q, "w1")
	if _, err := claim.Of(q).Settle(t.Context(), 0, "w1", queue.NewCall(), []queue.Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: queue.Release, Class: class, Error: "cannot"}}, claim.Ask{}); err != nil {
		t.Fatal(err)
	}
}

// die ends the lease of a worker that runs a task.
func die(t *testing.T, rdb redis.UniversalClient, q *queue.Queue) {
	t.Helper()
	take(t, q, "w2")
	do(t, rdb, "ZADD", q.Root(0)+":workers", 1, "w2")
	do(t, rdb, "HSET", q.Root(0), "turn_of", "r")
	if _, err := reaper.Sweep(t.Context(), q, 0, "r", 100, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// take enqueues a task, and makes a worker claim it.
func take(t *testing.T, q *queue.Queue, worker string) queue.Claim {
	t.Helper()
	queuetest.Enqueue(t, q, queue.Task{Queue: "email", Kind: "leter"})
	got, err := claim.Of(q).Fetch(t.Context(), 0, worker, claim.Ask{N: 1, Seq: time.Now().UnixMicro(), Lease: time.Hour, Quotas: []claim.Quota{{Queue: "email", N: 1}}})
	if err != nil || len(got.Claims) != 1 {
		t.Fatal(got, err)
	}
	return got.Claims[0]
}

var ruleOf = regexp.MustCompile(`(?s)ACL SETUSER (\w+) on >secret (.*?)\n` + "```")

// The rules of each role in docs/how-to/security.md are enough for doctor to say that the role is fit, and each missing one is named.
func TestRightsOfARole(t *testing.T) {
	server, admin, _ := sane(t)
	text, err := os.ReadFile("../../docs/how-to/security.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]queue.Access{"producer": queue.AccessProduce, "worker": queue.AccessWork, "reaper": queue.AccessReap, "reader": queue.AccessRead}
	seen := 0
	for _, m := range ruleOf.FindAllStringSubmatch(string(text), -1) {
		role, known := roles[m[1]]
		if !known {
			continue
		}
		seen++
		rules := strings.Fields(strings.ReplaceAll(m[2], "curfew:", "shop:"))
		for _, missing := range []string{"", "+hget", "&shop:{*"} {
			if missing == "&shop:{*" && role == queue.AccessRead {
				continue // a reader has no channels
			}
			words, removed := []any{"ACL", "SETUSER", m[1], "reset", "on", ">secret"}, false
			for _, rule := range rules {
				if rule == missing {
					removed = true
				} else {
					words = append(words, rule)
				}
			}
			if missing != "" && !removed {
				t.Errorf("docs/how-to/security.md does not give %s the rule %s", m[1], missing)
			}
			do(t, admin, words...)
			found := examineAll(t, client(t, "redis://"+m[1]+":secret@"+server.Addr), Config{Access: role})
			found = slices.DeleteFunc(found, func(f Finding) bool { return f.Subject == "calls" }) // they are slow on a busy machine
			got := about(found, "rights")
			if missing == "" {
				if want := fmt.Sprintf("ok the user has those of the role %s: ", role); got != want || Worst(found) != OK {
					t.Errorf("%s: %+v, want %q", m[1], found, want)
				}
				continue
			}
			if !strings.HasPrefix(got, "fail ") || !strings.Contains(got, "ACL SETUSER "+m[1]+" ") || !strings.Contains(got, missing) {
				t.Errorf("%s without %s: %q, want it to fail and name the rule", m[1], missing, got)
			}
		}
	}
	if seen != 4 {
		t.Errorf("docs/how-to/security.md has the rules of %d roles, want 4", seen)
	}
}

func TestAReplicaIsRefused(t *testing.T) {
	server, _, _ := sane(t)
	replica := redistest.Start(t, "--replicaof", strings.Replace(server.Addr, ":", " ", 1))
	found := examineAll(t, client(t, "redis://"+replica.Addr), Config{})
	if got := about(found, "server"); len(found) != 1 || !strings.HasPrefix(got, "fail it is a replica: connect to its master "+server.Addr) {
		t.Errorf("%+v", found)
	}
}

func TestTheEmbeddedServerIsExamined(t *testing.T) {
	rdb := client(t, "redis://"+redistest.Embedded(t).Addr())
	queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	found := examineAll(t, rdb, Config{})
	if got := about(found, "server"); Worst(found) == Fail || !strings.HasPrefix(got, "warn the embedded server of `curfew dev`") {
		t.Errorf("%+v", found)
	}
	if got := about(found, "functions"); !strings.Contains(got, "built in") {
		t.Errorf("functions: %s", got)
	}
}

func TestAServerThatIsGoneIsAnError(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Examine(ctx, client(t, "redis://127.0.0.1:1"), Config{Namespace: "shop", Access: queue.AccessAll})
	if err == nil || errors.Is(err, refusal.ErrUnfit) {
		t.Errorf("%v", err)
	}
}

// On a cluster each master is examined.
func TestACluster(t *testing.T) {
	redistest.SkipClusters(t)
	cluster := redistest.StartCluster(t)
	rdb := client(t, cluster.URL())
	queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 3})
	found := examineAll(t, rdb, Config{})
	nodes := map[string]bool{}
	for _, f := range found {
		if f.Subject == "server" {
			nodes[f.Node] = true
		}
	}
	if len(nodes) != 3 {
		t.Errorf("%d masters were examined: %+v", len(nodes), found)
	}
	if err := rdb.(*redis.ClusterClient).ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		return node.ConfigSet(ctx, "cluster-node-timeout", "15000").Err()
	}); err != nil {
		t.Fatal(err)
	}
	if got := about(examineAll(t, rdb, Config{}), "cluster"); !strings.Contains(got, "warn cluster-node-timeout is 15s") {
		t.Errorf("a long node timeout: %s", got)
	}
}

// A queue with room refuses tasks in a partition whose share is used up, and the examination says so.
func TestAPartitionIsFull(t *testing.T) {
	_, rdb, _ := sane(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "many", Partitions: 3})
	if _, err := q.LimitLength(t.Context(), "q", 6); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"0-a", "0-b", "1-a"} {
		queuetest.Enqueue(t, q, queue.Task{Queue: "q", ID: id})
	}
	found, err := Examine(t.Context(), rdb, Config{Namespace: "many", Access: queue.AccessAll})
	if want := "warn queue q is full in 1 of 3 partitions: 3 tasks are in line, and its maximum length is 6, so new tasks are refused: "; err != nil || !strings.Contains(about(found, "queues"), want) {
		t.Errorf("%q, %v, want %q", about(found, "queues"), err, want)
	}
}
