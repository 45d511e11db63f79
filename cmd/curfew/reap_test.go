package main

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// log is an output that a test reads while the command writes.
type log struct{ harness.Logs }

func (l *log) await(t *testing.T, words string) {
	t.Helper()
	await.Until(t, "the log says "+words, func() bool { return strings.Contains(l.String(), words) })
}

// startReap runs curfew reap until stop, which returns its exit code.
func startReap(t *testing.T, args string) (errs *log, stop func() int) {
	t.Helper()
	errs = &log{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"curfew", "reap"}, strings.Fields(args)...), io.Discard, errs)
	}()
	stop = sync.OnceValue(func() int {
		cancel()
		return await.Receive(t, ended, "curfew reap ends")
	})
	t.Cleanup(func() { stop() })
	return errs, stop
}

// ends fails the test unless a task ends by itself. It reads without a call that could end it.
func ends(t *testing.T, q *queue.Queue, id string) {
	t.Helper()
	partition := queuetest.Partition(t, id)
	await.Until(t, "a reaper ends the task "+id, func() bool {
		n, err := q.Client().ZCard(context.Background(), q.Root(partition)+":deadlines").Result()
		return err == nil && n == 0
	})
}

func TestReapEndsWhatIsLateUntilItIsInterrupted(t *testing.T) {
	rdb, url := database(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 2})
	errs, stop := startReap(t, "--namespace shop --fallback 200ms --batch 7 --name night --redis "+url)
	errs.await(t, `msg="The reaper runs" namespace=shop partitions=2 fallback=200ms`)
	for range 4 {
		id := queuetest.Enqueue(t, q, queue.Task{Timeout: 20 * time.Millisecond}).ID
		ends(t, q, id)
	}
	for p := range 2 { // a later sweep of the partition: the replies about the tasks have been counted
		turn := func() []any { return q.Client().HMGet(t.Context(), q.Root(p), "turn_of", "turn_until").Val() }
		before := turn()
		await.Until(t, "the reaper sweeps again", func() bool {
			now := turn()
			of, _ := now[0].(string)
			return strings.HasPrefix(of, "night-") && now[1] != before[1]
		})
	}
	if code := stop(); code != 0 || !strings.Contains(errs.String(), `msg="The reaper stopped" timed_out=4 `) {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// The server is killed and starts again with what it had.
func TestReapSurvivesAnOutage(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	q := queuetest.Open(t, server.Client(t), queue.Config{})
	errs, stop := startReap(t, "--log-format json --redis redis://"+server.Addr)
	errs.await(t, `"msg":"The reaper runs","namespace":"curfew","partitions":1`)
	server.Kill()
	errs.await(t, `"level":"ERROR","msg":"Error timing out expired tasks: `)
	server.Restart(t)
	ends(t, q, queuetest.Enqueue(t, q, queue.Task{Timeout: 20 * time.Millisecond}).ID)
	if code := stop(); code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// The command starts before its server does.
func TestReapWaitsForItsServer(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	errs, stop := startReap(t, "--create --namespace shop --redis redis://"+server.Addr)
	errs.await(t, "Redis does not answer yet: trying again; give its address with --redis or REDIS_URL")
	server.Restart(t)
	errs.await(t, "The reaper runs")
	if n := server.Client(t).Exists(t.Context(), "shop:{0}").Val(); n != 1 {
		t.Error("--create did not create the namespace")
	}
	if code := stop(); code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// Two reapers run at once. One of them ends, and the other continues.
func TestTwoReapTogether(t *testing.T) {
	rdb, url := database(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	url = " --fallback 50ms --redis " + url
	first, stop := startReap(t, "--name first"+url)
	first.await(t, "The reaper runs")
	await.Until(t, "the first has the turn", func() bool {
		return strings.HasPrefix(q.Client().HGet(t.Context(), q.Root(0), "turn_of").Val(), "first-")
	})
	second, _ := startReap(t, "--name second"+url)
	second.await(t, "The reaper runs")
	ends(t, q, queuetest.Enqueue(t, q, queue.Task{Timeout: 5 * time.Millisecond}).ID)
	if code := stop(); code != 0 {
		t.Errorf("exit %d, %s", code, first)
	}
	ends(t, q, queuetest.Enqueue(t, q, queue.Task{Timeout: 5 * time.Millisecond}).ID)
	await.Until(t, "the second has the turn", func() bool {
		return strings.HasPrefix(q.Client().HGet(t.Context(), q.Root(0), "turn_of").Val(), "second-")
	})
}

// A reaper with the least rights of docs/how-to/security.md.
func TestReapNeedsTheRightsOfAReaperOnly(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	q := queuetest.Open(t, admin, queue.Config{})
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reaper", "on", ">secret", "~curfew:{*", "&curfew:{*", "+fcall", "+function|load", "+info", "+del", "+exists", "+hdel", "+hget",
		"+hgetall", "+hincrby", "+hlen", "+hmget", "+hset", "+llen", "+lrange", "+ltrim", "+mget", "+mset", "+rpush", "+sadd", "+scard", "+set", "+sismember", "+smembers", "+time", "+unlink", "+xadd", "+xlen",
		"+zadd", "+zcard", "+zinter", "+zrange", "+zrangebyscore", "+zrem", "+zrevrange", "+zrevrangebyscore", "+zscore", "+publish", "+subscribe").Err(); err != nil {
		t.Fatal(err)
	}
	errs, stop := startReap(t, "--redis redis://reaper:secret@"+server.Addr)
	errs.await(t, "The reaper runs")
	ends(t, q, queuetest.Enqueue(t, q, queue.Task{Timeout: 5 * time.Millisecond}).ID)
	if code := stop(); code != 0 || strings.Contains(errs.String(), "level=ERROR") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
