package facade

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// both runs a test on a real Redis and on the embedded server.
func both(t *testing.T, test func(t *testing.T, c *client, q *queue.Queue)) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		test(t, clientOf(t, rdb, q), q)
		queuetest.Sound(t, q)
	})
}

func TestAWorkerInGoRunsATaskOfAnotherLanguage(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, q *queue.Queue) {
		id := c.enqueue("render", "payload", `{"page":"index"}`, "timeout", "1m", "headers", `{"a":"b"}`, "max_retries", 2, "backoff_delay", "none")
		w := worker.New(q, worker.Config{})
		w.HandleRaw("render", func(ctx context.Context, payload []byte) ([]byte, error) {
			info := worker.Info(ctx)
			return fmt.Appendf(nil, "%s %s %s", info.ID, payload, info.Headers["a"]), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		want := id + ` {"page":"index"} b`
		if result, err := q.Result(t.Context(), id); string(result) != want || err != nil {
			t.Fatalf("Result = %q, %v, want %s", result, err, want)
		}
		end := c.call("result", id)
		if end["status"] != "COMPLETED" || end["result"] != want || end["completed_at"] == nil {
			t.Errorf("curfew_result = %v", end)
		}
		cancel()
		if err := await.Receive(t, ended, "the worker to end"); err != nil {
			t.Error(err)
		}
	})
}

func TestAWorkerInAnotherLanguageRunsATaskOfGo(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, q *queue.Queue) {
		r := queuetest.Enqueue(t, q, queue.Task{Kind: "render", Payload: []byte("p\x00\xff"), Timeout: time.Minute, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}, Headers: map[string]string{"a": "b"}})
		claims := c.claims("py-1", "slots", 5, "lease", "1m")
		if len(claims) != 1 {
			t.Fatalf("claims %v, want one", claims)
		}
		claim := claims[0]
		want := map[string]any{"id": r.ID, "epoch": "1", "kind": "render", "queue": "default", "attempt": "1", "payload": "p\x00\xff",
			"deadline_at": fmt.Sprint(r.Deadline.UnixMilli()), "max_retries": "1", "headers": `{"a":"b"}`, "created_at": claim["created_at"]}
		if fmt.Sprint(claim) != fmt.Sprint(want) {
			t.Errorf("claim %v\nwant  %v", claim, want)
		}
		if got := c.call("heartbeat", "py-1", "claims", r.ID+"=1", "progress", "half"); fmt.Sprint(got["stops"]) != "[]" || got["stop"] != "0" {
			t.Errorf("curfew_heartbeat = %v", got)
		}
		if got := c.call("settle", "py-1", r.ID, 1, "error", "not yet"); got["status"] != "PENDING" {
			t.Errorf("curfew_settle of an error = %v, want that it is retried", got)
		}
		claim = c.claims("py-1")[0]
		if claim["attempt"] != "2" || claim["epoch"] != "2" {
			t.Errorf("the second claim is %v", claim)
		}
		for range 2 { // the second is a repeat
			if got := c.call("settle", "py-1", r.ID, 2, "result", "done"); got["status"] != "COMPLETED" {
				t.Errorf("curfew_settle = %v", got)
			}
		}
		if result, err := q.Result(t.Context(), r.ID); string(result) != "done" || err != nil {
			t.Errorf("Result = %q, %v", result, err)
		}
	})
}

// Two workers use the same name for a call. A report of one is no repeat of the other's.
func TestTwoWorkersUseTheSameCall(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, _ *queue.Queue) {
		id := c.enqueue("render", "max_retries", 2, "backoff_delay_ms", 0)
		if got := c.claims("py-1", "seq", 1); len(got) != 1 {
			t.Fatal(got)
		}
		c.call("settle", "py-1", id, 1, "error", "no", "delay", "0s", "call", "C1")
		if got := c.claims("py-2", "seq", 1); len(got) != 1 || got[0]["epoch"] != "2" {
			t.Fatal(got)
		}
		if got := c.claims("py-2", "seq", 1); len(got) != 1 { // a repeat
			t.Error(got)
		}
		if got := c.call("settle", "py-2", id, 2, "result", "done", "call", "C1"); got["status"] != "COMPLETED" {
			t.Errorf("the second worker: %v", got)
		}
		if got := c.call("settle", "py-1", id, 1, "error", "no", "delay", "0s", "call", "C1"); got["status"] != "PENDING" {
			t.Errorf("the repeat of the first worker: %v", got)
		}
		if got := c.call("fetch", "py-2", "seq", 1); fmt.Sprintf("%v %v %v", got["claims"], got["wait_ms"], got["stop"]) != "[] 1000 0" {
			t.Errorf("a seq that was used: %v", got)
		}
	})
}

// A worker in another language that dies holds its task no longer than its lease.
func TestATaskOfAWorkerThatDiedRunsAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, _ *queue.Queue) {
		id := c.enqueue("render")
		if got := c.claims("py-1", "lease", "20ms"); len(got) != 1 {
			t.Fatal(got)
		}
		await.Until(t, "a sweep gives the task back", func() bool { return c.call("sweep", "shell")["given_back"] == "1" })
		if got := c.claims("py-2"); len(got) != 1 || got[0]["id"] != id || got[0]["epoch"] != "2" {
			t.Errorf("claims %v, want %s", got, id)
		}
		if _, err := c.try("settle", "py-1", id, 1, "result", "late"); err == nil || !strings.HasPrefix(err.Error(), "CURFEW LOST ") {
			t.Errorf("the late result of the first worker: error %v, want CURFEW LOST", err)
		}
	})
}

func TestAProducerWaitsForAResultWithoutPolling(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, _ *queue.Queue) {
		id := c.enqueue("render", "timeout", "1m")
		// The channel is known from the reply; a real program subscribes to root:ended at once.
		sub := c.rdb.Subscribe(t.Context(), c.root+":ended")
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := c.call("result", id)
		if before["status"] != "PENDING" || before["channel"] != c.root+":ended" || before["until"] == nil {
			t.Fatalf("curfew_result of a task that waits = %v", before)
		}
		c.claims("py-1")
		c.call("settle", "py-1", id, 1, "result", "done")
		if message := await.Receive(t, sub.Channel(), "a message"); message.Payload != id {
			t.Errorf("the channel carries %q, want %s", message.Payload, id)
		}
		if got := c.call("result", id); got["result"] != "done" {
			t.Errorf("curfew_result = %v", got)
		}
	})
}

func TestATimeoutIsNoticedWithoutGo(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, _ *queue.Queue) {
		id := c.enqueue("render", "timeout", "5ms")
		await.Until(t, "a sweep ends the task", func() bool { return c.call("sweep", "shell")["timed_out"] == "1" })
		got := c.call("result", id)
		if got["status"] != "FAILED" || got["reason"] != "timeout" || got["timeout_type"] != "execution" {
			t.Errorf("curfew_result = %v", got)
		}
	})
}

func TestAFetchThatFindsNothingNamesTheKeysToWaitFor(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, _ *queue.Queue) {
		got := c.call("fetch", "py-1", "queues", "mail, render=3")
		if fmt.Sprint(got["claims"]) != "[]" || fmt.Sprint(got["wake"]) != fmt.Sprintf("[%s:wake:mail %s:wake:render]", c.root, c.root) || got["wait_ms"] != "1000" {
			t.Fatalf("curfew_fetch = %v", got)
		}
		woken := make(chan error, 1)
		go func() {
			woken <- c.rdb.BLPop(t.Context(), 30*time.Second, c.root+":wake:mail", c.root+":wake:render").Err()
		}()
		id := c.enqueue("k", "queue", "render")
		if err := await.Receive(t, woken, "a wake token"); err != nil {
			t.Fatal(err)
		}
		if claims := c.claims("py-1", "queues", "mail,render"); len(claims) != 1 || claims[0]["id"] != id {
			t.Errorf("claims %v, want %s", claims, id)
		}
	})
}

// A list is stored whole or not at all, and its numbers and empty lists stay as they were written.
func TestAListOfTasks(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, q *queue.Queue) {
		payloads := []string{`{"n":12345678901234567890,"empty":[],"none":{}}`, `"text \" with \\ and ]}"`, `[1.0, 2e3]`, `true`, `-0`}
		text := "[ "
		for i, p := range payloads {
			text += fmt.Sprintf(` {"kind" : "k%d", "payload":%s , "timeout":"1m" ,"queue":null},`, i, p)
		}
		reply, err := c.try("enqueue_many", strings.TrimSuffix(text, ",")+" ] ")
		if err != nil {
			t.Fatal(err)
		}
		for i, receipt := range reply.([]any) {
			r := named(receipt)
			record, err := q.Get(t.Context(), fmt.Sprint(r["id"]))
			if err != nil {
				t.Fatal(err)
			}
			if string(record.Payload) != payloads[i] || record.Kind != fmt.Sprint("k", i) || fmt.Sprint(record.Deadline.UnixMilli()) != r["deadline_at"] || r["new"] != "1" {
				t.Errorf("receipt %v of a task with the payload %s, want %s", r, record.Payload, payloads[i])
			}
		}
	})
}

func TestEachTaskWithoutAnIDGetsAnother(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, _ *queue.Queue) {
		seen, last := map[string]bool{}, ""
		for range 3 {
			reply, err := c.try("enqueue_many", "["+strings.TrimSuffix(strings.Repeat(`{"kind":"k","delay":"1h"},`, 100), ",")+"]")
			if err != nil {
				t.Fatal(err)
			}
			for _, receipt := range reply.([]any) {
				id := fmt.Sprint(named(receipt)["id"])
				if seen[id] || id <= last {
					t.Fatalf("the id %s after %s: it is not a new one, or does not sort behind it", id, last)
				}
				seen[id], last = true, id
			}
		}
	})
}

func TestCancelResolveAndSignal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c *client, _ *queue.Queue) {
		task, promise := c.enqueue("k"), c.enqueue("k", "role", "promise")
		agent := c.enqueue("k", "timeout", "1m")
		for _, row := range []struct {
			call string
			args []any
			want string
		}{
			{"cancel", []any{task, "reason", "why"}, "map[changed:1 id:" + task + " status:CANCELLED]"},
			{"cancel", []any{task}, "map[changed:0 error:why id:" + task + " status:CANCELLED]"},
			{"resolve", []any{promise, "result", "yes", "call", "c1"}, "map[changed:1 id:" + promise + " status:COMPLETED]"},
			{"resolve", []any{promise, "result", "yes", "call", "c1"}, "map[changed:1 id:" + promise + " status:COMPLETED]"},
			{"resolve", []any{promise, "error", "no"}, "map[changed:0 id:" + promise + " result:yes status:COMPLETED]"},
			{"signal", []any{agent, "go", "payload", "1"}, "map[changed:1 id:" + agent + ".s-go status:COMPLETED]"},
			{"signal", []any{agent, "go", "payload", "2"}, "map[changed:0 id:" + agent + ".s-go result:1 status:COMPLETED]"},
		} {
			if got := fmt.Sprint(c.call(row.call, row.args...)); got != row.want {
				t.Errorf("%s %v = %s\nwant %s", row.call, row.args, got, row.want)
			}
		}
	})
}

func TestAnIdempotencyKeyMakesARepeatSafe(t *testing.T) {
	t.Parallel()
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Partitions: 4})
		r, err := q.Enqueue(t.Context(), queue.Task{Kind: "k", IdempotencyKey: "order 1"})
		if err != nil {
			t.Fatal(err)
		}
		p, _ := queue.PartitionOf(r.ID)
		for n := range 4 {
			c := &client{t, rdb, q.Root(n)}
			id, err := c.try("enqueue", "k", "idempotency_key", "order 1")
			want := fmt.Sprintf(`CURFEW PARTITION the idempotency key "order 1" belongs to partition %d: use the key %s`, p, q.Root(p))
			if n == p && (err != nil || id != r.ID) || n != p && (err == nil || err.Error() != want) {
				t.Errorf("in partition %d: %v, %v; want %s in partition %d", n, id, err, r.ID, p)
			}
		}
	})
}

func TestAboutAndStats(t *testing.T) {
	t.Parallel()
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Partitions: 3})
		c := clientOf(t, rdb, q)
		c.enqueue("k", "queue", "mail", "timeout", "1m")
		about := c.call("about")
		if about["partitions"] != "3" || fmt.Sprint(about["roots"]) != "["+q.Root(0)+" "+q.Root(1)+" "+q.Root(2)+"]" || fmt.Sprint(about["records"]) != "[2]" || about["events"] != "terminal" {
			t.Errorf("curfew_about = %v", about)
		}
		c.root = "absent:{0}"
		if got := c.call("about"); got["partitions"] != "0" || fmt.Sprint(got["roots"]) != "[]" {
			t.Errorf("curfew_about of a namespace that is not there = %v", got)
		}
		c.root = q.Root(0)
		stats := c.call("stats")
		queues := stats["queues"].([]any)
		if len(queues) != 1 || named(queues[0])["queue"] != "mail" || named(queues[0])["ready"] != "1" || stats["deadlines"] != "1" || stats["next"] != "0" {
			t.Errorf("curfew_stats = %v", stats)
		}
	})
}
