package faultproxy

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// through runs a test with a client of each protocol behind a proxy, and one beside it.
func through(t *testing.T, test func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string)) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			s := redistest.Shared(t)
			p := Start(t, s.Addr)
			rdb := redis.NewClient(&redis.Options{Addr: p.Addr, Protocol: protocol, MaxRetries: -1,
				ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second})
			t.Cleanup(func() { rdb.Close() })
			test(t, p, rdb, s.Client(t), redistest.Namespace(t))
		})
	}
}

func TestWhatNoFaultMeetsPassesUnchanged(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		big := strings.Repeat("x\r\n\x00*1$", 200_000)
		calls := [][]any{
			{"SET", key, big}, {"GET", key}, {"GET", key + ":none"}, {"INCR", key}, {"PING"}, {"ECHO", ""},
			{"HSET", key + ":h", "a", 1, "b", ""}, {"HGETALL", key + ":h"}, {"ZADD", key + ":z", 1.5, "m"},
			{"ZSCORE", key + ":z", "m"}, {"ZRANGE", key + ":z", 0, -1, "WITHSCORES"}, {"LRANGE", key + ":l", 0, -1},
			{"EVAL", "return {1, false, {'a', {'b'}}, {ok='fine'}}", 0}, {"NOSUCHCOMMAND"}, {"CONFIG", "GET", "save"},
		}
		for _, call := range calls {
			got, err := rdb.Do(t.Context(), call...).Result()
			if call[0] == "SET" || call[0] == "HSET" || call[0] == "ZADD" {
				if err != nil {
					t.Errorf("%v: %v", call[0], err)
				}
				continue
			}
			plain := redis.NewClient(&redis.Options{Addr: direct.Options().Addr, Protocol: rdb.Options().Protocol})
			want, wanted := plain.Do(t.Context(), call...).Result()
			plain.Close()
			if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wanted) {
				t.Errorf("%v through the proxy: %.100v, %v\nwithout: %.100v, %v", call[0], got, err, want, wanted)
			}
		}
		cmds, err := rdb.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for i := range 2000 {
				pipe.RPush(t.Context(), key+":many", i)
			}
			return nil
		})
		if err != nil || cmds[1999].(*redis.IntCmd).Val() != 2000 {
			t.Errorf("a transaction of 2000: %v, %v", cmds[1999], err)
		}
	})
}

func TestABlockingCommandWaitsAndGetsItsAnswer(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		answer := make(chan error, 1)
		go func() {
			got, err := rdb.BLPop(t.Context(), 10*time.Second, key).Result()
			if err == nil && got[1] != "x" {
				err = fmt.Errorf("got %q", got)
			}
			answer <- err
		}()
		if err := direct.RPush(t.Context(), key, "x").Err(); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; err != nil {
			t.Errorf("BLPOP: %v", err)
		}
	})
}

func TestSubscribersGetTheirMessages(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		sub := rdb.Subscribe(t.Context(), key+":a", key+":b")
		defer sub.Close()
		for range 2 {
			if _, err := sub.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			direct.Publish(t.Context(), key+":b", i)
		}
		for i := range 100 {
			m, err := sub.ReceiveMessage(t.Context())
			if err != nil || m.Payload != fmt.Sprint(i) {
				t.Fatalf("message %d: %v, %v", i, m, err)
			}
		}
		p.CutRequest(Command("ping"), 1) // a stream is not met
		if err := sub.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		if pong, err := sub.Receive(t.Context()); err != nil || pong.(*redis.Pong) == nil {
			t.Errorf("PING of a subscriber: %v, %v", pong, err)
		}
		if err := rdb.Ping(t.Context()).Err(); err == nil {
			t.Error("another connection is not met")
		}
	})
}

// An invalidation that comes while a call blocks is not the call's answer.
func TestAPushIsNoAnswer(t *testing.T) {
	s := redistest.Shared(t)
	direct, key := s.Client(t), redistest.Namespace(t)
	p := Start(t, s.Addr)
	cut := p.CutReply(Command("blpop"), 1)
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	from := bufio.NewReader(conn)
	for _, request := range []string{"HELLO 3", "CLIENT TRACKING ON", "GET " + key} {
		fmt.Fprint(conn, request+"\r\n")
		if _, err := readFrame(from, nil); err != nil {
			t.Fatalf("%s: %v", request, err)
		}
	}
	fmt.Fprintf(conn, "BLPOP %s:list 10\r\n", key)
	for strings.Contains(direct.Info(t.Context(), "clients").Val(), "\nblocked_clients:0") {
		// it is on its way
	}
	direct.Set(t.Context(), key, "changed", 0)
	if push, err := readFrame(from, nil); err != nil || !strings.HasPrefix(string(push), ">2\r\n$10\r\ninvalidate") {
		t.Errorf("read %q, %v, want the invalidation", push, err)
	}
	direct.RPush(t.Context(), key+":list", "x")
	if got, err := readFrame(from, nil); err == nil {
		t.Errorf("read %q, want the answer to be cut", got)
	}
	cut.Await(t)
}

func TestACutReplyHasRun(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		cut := p.CutReply(func(args [][]byte) bool { return Command("incr")(args) && string(args[1]) == key }, 2)
		for i := range 4 {
			err := rdb.Incr(t.Context(), key).Err()
			if lost := err != nil; lost != (i < 2) {
				t.Errorf("call %d: error %v, want one: %v", i, err, i < 2)
			}
		}
		cut.Await(t)
		cut.Await(t)
		if n, _ := direct.Get(t.Context(), key).Int(); n != 4 {
			t.Errorf("the command ran %d times, want 4", n)
		}
	})
}

func TestACutReplyInAPipelineKeepsTheOnesBefore(t *testing.T) {
	s := redistest.Shared(t)
	key := redistest.Namespace(t)
	p := Start(t, s.Addr)
	p.CutReply(Command("HSET"), 1)
	conn, err := net.Dial("tcp", p.Addr) // go-redis would hide the first answer
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "INCR %[1]s\r\nHSET %[1]s:h a 1\r\nINCR %[1]s\r\n", key)
	if got, _ := io.ReadAll(conn); string(got) != ":1\r\n" {
		t.Errorf("the answers are %q, want the first and no other", got)
	}
	if n, err := s.Client(t).HLen(t.Context(), key+":h").Result(); n != 1 || err != nil {
		t.Errorf("HSET of which the answer was lost: %d fields, %v", n, err)
	}
}

func TestACutRequestHasNotRun(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		cut := p.CutRequest(Command("incr"), 1)
		if err := rdb.Incr(t.Context(), key).Err(); err == nil {
			t.Error("a request that was cut has an answer")
		}
		cut.Await(t)
		if err := direct.Get(t.Context(), key).Err(); err != redis.Nil {
			t.Errorf("the command ran though its request was cut (%v)", err)
		}
		if n, err := rdb.Incr(t.Context(), key).Result(); n != 1 || err != nil {
			t.Errorf("the next: %d, %v, want 1", n, err)
		}
	})
}

func TestAHeldReplyComesWhenItIsReleased(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		held := p.Hold(Command("incr"))
		answer := make(chan error, 2)
		for range 2 {
			go func() { answer <- rdb.Incr(t.Context(), key).Err() }()
			held.Await(t)
		}
		if n, err := direct.Get(t.Context(), key).Int(); n != 2 || err != nil {
			t.Errorf("while the replies are held the command has run %d times, %v, want 2", n, err)
		}
		if err := rdb.Get(t.Context(), key).Err(); err != nil {
			t.Errorf("another connection is held too: %v", err)
		}
		select {
		case err := <-answer:
			t.Errorf("the held reply came: %v", err)
		default:
		}
		p.Release()
		for range 2 {
			if err := <-answer; err != nil {
				t.Errorf("after Release: %v", err)
			}
		}
		if err := rdb.Incr(t.Context(), key).Err(); err != nil {
			t.Errorf("the next one is held, or lost: %v", err)
		}
		p.Release() // and nothing is held
	})
}

func TestAHeldClientMayGo(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		held := p.Hold(Command("incr"))
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- rdb.Incr(ctx, key).Err() }()
		held.Await(t)
		cancel()
		rdb.Close()
		if err := <-answer; err == nil {
			t.Error("a held reply came")
		}
		// The proxy's end waits for all that runs, so a leak would hang this test.
	})
}

func TestAScriptIsMetHoweverItIsSent(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		source := `return redis.call("INCR", KEYS[1]) -- ` + key
		sum := sha1.Sum([]byte(source))
		sha := hex.EncodeToString(sum[:])
		p.CutReply(Script(sha), 2)
		if err := rdb.EvalSha(t.Context(), sha, []string{key}).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("EVALSHA of a script that nobody loaded: %v, want NOSCRIPT to pass", err)
		}
		if err := rdb.Eval(t.Context(), source, []string{key}).Err(); err == nil {
			t.Error("EVAL was not met")
		}
		if err := rdb.EvalSha(t.Context(), strings.ToUpper(sha), []string{key}).Err(); err == nil {
			t.Error("EVALSHA was not met")
		}
		if err := rdb.Eval(t.Context(), "return 1", nil).Err(); err != nil {
			t.Errorf("another script was met: %v", err)
		}
		if n, _ := direct.Get(t.Context(), key).Int(); n != 2 {
			t.Errorf("the script ran %d times, want 2", n)
		}
	})
}

func TestASubscriptionCanBeCut(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		cut := p.CutReply(Command("subscribe"), 1)
		sub := rdb.Subscribe(t.Context(), key)
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err == nil {
			t.Error("the confirmation came")
		}
		cut.Await(t)
		if got, err := sub.Receive(t.Context()); err != nil {
			t.Errorf("subscribed anew: %v, %v", got, err)
		}
	})
}

func TestAPartitionSwallowsUntilItIsHealed(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		idle := rdb.Conn()
		defer idle.Close()
		if err := idle.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.Incr(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}

		p.Partition(true)
		for _, what := range []string{"an old connection", "a new one"} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			err := rdb.Incr(ctx, key).Err()
			var timeout net.Error
			if !errors.Is(err, context.DeadlineExceeded) && !(errors.As(err, &timeout) && timeout.Timeout()) {
				t.Errorf("%s: %v, want a time-out", what, err)
			}
			cancel()
		}
		if n, _ := direct.Get(t.Context(), key).Int(); n != 1 {
			t.Errorf("the server heard of %d calls, want the 1 before", n)
		}

		p.Partition(false)
		if err := idle.Ping(t.Context()).Err(); err != nil {
			t.Errorf("a connection that had lost nothing: %v", err)
		}
		if n, err := rdb.Incr(t.Context(), key).Result(); n != 2 || err != nil {
			t.Errorf("after it was healed: %d, %v, want 2", n, err)
		}
	})
}

// A subscriber cannot notice that messages are swallowed, so healing closes it.
func TestASubscriberThatLostMessagesIsClosed(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		sub := rdb.Subscribe(t.Context(), key)
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Partition(true)
		direct.Publish(t.Context(), key, "lost")
		direct.Wait(t.Context(), 0, 0)
		lost := func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			for l := range p.links {
				if l.lost.Load() {
					return true
				}
			}
			return false
		}
		await.Until(t, "the message arrives at the proxy", lost)
		p.Partition(false)
		if m, err := sub.Receive(t.Context()); err == nil {
			t.Errorf("the subscriber goes on with %v", m)
		}
	})
}

func TestCloseAllClosesAndAcceptsAgain(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		answer := make(chan error, 1)
		seen := p.Hold(Command("incr")) // tells that the request has arrived
		go func() { answer <- rdb.Incr(t.Context(), key).Err() }()
		seen.Await(t)
		p.CloseAll()
		if err := <-answer; err == nil {
			t.Error("a call in flight has an answer")
		}
		p.Release()
		if n, err := rdb.Incr(t.Context(), key).Result(); n != 2 || err != nil {
			t.Errorf("a new connection: %d, %v, want 2", n, err)
		}
	})
}

func TestAServerThatIsAwayIsAClosedConnection(t *testing.T) {
	s := redistest.Start(t)
	p := Start(t, s.Addr)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1})
	t.Cleanup(func() { rdb.Close() })
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection while the server is away: %v, want it closed", err)
	}
	s.Restart(t)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the server that came back: %v", err)
	}
}
