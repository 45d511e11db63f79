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

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// through runs a test for each protocol, with a client rdb behind a proxy and a client direct
// without the proxy.
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

func TestRequestsWithoutAFaultPassUnchanged(t *testing.T) {
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
				t.Errorf("%v through the proxy: %.100v, %v\nwithout it: %.100v, %v", call[0], got, err, want, wanted)
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
		p.CutRequest(Command("ping"), 1) // no fault meets a stream
		if err := sub.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		if pong, err := sub.Receive(t.Context()); err != nil || pong.(*redis.Pong) == nil {
			t.Errorf("PING of a subscriber: %v, %v", pong, err)
		}
		if err := rdb.Ping(t.Context()).Err(); err == nil {
			t.Error("PING on another connection has a reply, want it cut")
		}
	})
}

// An invalidation that comes while a call blocks is not the reply to the call.
func TestAPushIsNotAReply(t *testing.T) {
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
		// BLPOP has not reached the server
	}
	direct.Set(t.Context(), key, "changed", 0)
	if push, err := readFrame(from, nil); err != nil || !strings.HasPrefix(string(push), ">2\r\n$10\r\ninvalidate") {
		t.Errorf("read %q, %v, want the invalidation", push, err)
	}
	direct.RPush(t.Context(), key+":list", "x")
	if got, err := readFrame(from, nil); err == nil {
		t.Errorf("read %q, want the reply cut", got)
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
	conn, err := net.Dial("tcp", p.Addr) // go-redis would hide the first reply
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "INCR %[1]s\r\nHSET %[1]s:h a 1\r\nINCR %[1]s\r\n", key)
	if got, _ := io.ReadAll(conn); string(got) != ":1\r\n" {
		t.Errorf("the replies are %q, want only the first", got)
	}
	if n, err := s.Client(t).HLen(t.Context(), key+":h").Result(); n != 1 || err != nil {
		t.Errorf("HSET with a cut reply: %d fields, %v, want 1", n, err)
	}
}

func TestACutRequestHasNotRun(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		cut := p.CutRequest(Command("incr"), 1)
		if err := rdb.Incr(t.Context(), key).Err(); err == nil {
			t.Error("a cut request has a reply")
		}
		cut.Await(t)
		if err := direct.Get(t.Context(), key).Err(); err != redis.Nil {
			t.Errorf("the command of a cut request ran (%v)", err)
		}
		if n, err := rdb.Incr(t.Context(), key).Result(); n != 1 || err != nil {
			t.Errorf("the next request: %d, %v, want 1", n, err)
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
			t.Errorf("a reply on another connection: %v, want it not held", err)
		}
		select {
		case err := <-answer:
			t.Errorf("a held reply came before Release: %v", err)
		default:
		}
		p.Release()
		for range 2 {
			if err := <-answer; err != nil {
				t.Errorf("after Release: %v", err)
			}
		}
		if err := rdb.Incr(t.Context(), key).Err(); err != nil {
			t.Errorf("a request after Release: %v", err)
		}
		p.Release() // without a hold it does nothing
	})
}

func TestAClientWithAHeldReplyCanClose(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		held := p.Hold(Command("incr"))
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- rdb.Incr(ctx, key).Err() }()
		held.Await(t)
		cancel()
		rdb.Close()
		if err := <-answer; err == nil {
			t.Error("a held reply came after the client closed")
		}
		// end waits for all goroutines of the proxy, so a leak would hang this test.
	})
}

func TestAFaultMeetsAScriptByEvalAndEvalSha(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		source := `return redis.call("INCR", KEYS[1]) -- ` + key
		sum := sha1.Sum([]byte(source))
		sha := hex.EncodeToString(sum[:])
		p.CutReply(Script(sha), 2)
		if err := rdb.EvalSha(t.Context(), sha, []string{key}).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("EVALSHA of an unknown script: %v, want NOSCRIPT to pass", err)
		}
		if err := rdb.Eval(t.Context(), source, []string{key}).Err(); err == nil {
			t.Error("EVAL has a reply, want it cut")
		}
		if err := rdb.EvalSha(t.Context(), strings.ToUpper(sha), []string{key}).Err(); err == nil {
			t.Error("EVALSHA has a reply, want it cut")
		}
		if err := rdb.Eval(t.Context(), "return 1", nil).Err(); err != nil {
			t.Errorf("EVAL of another script: %v, want it not cut", err)
		}
		if n, _ := direct.Get(t.Context(), key).Int(); n != 2 {
			t.Errorf("the script ran %d times, want 2", n)
		}
	})
}

func TestAFaultMeetsAFunctionByFCall(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		name := strings.ReplaceAll(key, ".", "_")
		source := fmt.Sprintf("#!lua name=%s\nredis.register_function('%[1]s', function(keys) return redis.call('INCR', keys[1]) end)", name)
		if err := direct.FunctionLoad(t.Context(), source).Err(); err != nil {
			t.Fatal(err)
		}
		p.CutReply(Script(name), 1)
		if err := rdb.FCall(t.Context(), name, []string{key}).Err(); err == nil {
			t.Error("FCALL has a reply, want it cut")
		}
		if n, err := rdb.FCall(t.Context(), name, []string{key}).Int(); n != 2 || err != nil {
			t.Errorf("the second FCALL = %d, %v, want 2: the function ran both times", n, err)
		}
	})
}

func TestSayRepliesInPlaceOfTheServer(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		idle, err := net.Dial("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
		closed := func() bool {
			idle.SetReadDeadline(time.Now().Add(10 * time.Second))
			_, err := idle.Read(make([]byte, 1))
			return err == io.EOF
		}
		fmt.Fprint(idle, "PING\r\n")
		if pong, err := readFrame(bufio.NewReader(idle), nil); err != nil || string(pong) != "+PONG\r\n" {
			t.Fatalf("PING = %q, %v", pong, err)
		}
		p.Say("-LOADING Redis is loading")
		if !closed() {
			t.Error("a connection from before Say is open")
		}
		for range 2 {
			if err := rdb.Incr(t.Context(), key).Err(); !redis.HasErrorPrefix(err, "LOADING") {
				t.Errorf("INCR = %v, want LOADING", err)
			}
		}
		p.Say("")
		if n, err := rdb.Incr(t.Context(), key).Result(); n != 1 || err != nil {
			t.Errorf("after Say(\"\"): INCR = %d, %v, want 1: the server got no request before", n, err)
		}
	})
}

// Two connections together send 150,000 bytes through a link of 500,000 bytes a second.
func TestASlowLinkPassesItsRateForAllConnections(t *testing.T) {
	const rate, size = 500_000, 75_000
	s := redistest.Shared(t)
	addr, passed := Slow(t, s.Addr, rate)
	key, start := redistest.Namespace(t), time.Now()
	sent := make(chan error, 2)
	for i := range 2 {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { rdb.Close() })
		go func() { sent <- rdb.Set(t.Context(), fmt.Sprint(key, ":", i), strings.Repeat("x", size), 0).Err() }()
	}
	for range 2 {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	if took, least := time.Since(start), 2*size*time.Second/rate; took < least {
		t.Errorf("2 × %d bytes took %v, want at least %v", size, took, least)
	}
	if n := passed(); n < 2*size || n > 2*size+20_000 {
		t.Errorf("the link says that it has passed %d bytes, want %d and some commands", n, 2*size)
	}
	for i := range 2 {
		if n, err := s.Client(t).StrLen(t.Context(), fmt.Sprint(key, ":", i)).Result(); n != size || err != nil {
			t.Errorf("value %d has %d bytes, %v, want %d", i, n, err, size)
		}
	}
}

func TestASubscriptionCanBeCut(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		cut := p.CutReply(Command("subscribe"), 1)
		sub := rdb.Subscribe(t.Context(), key)
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err == nil {
			t.Error("the confirmation came, want it cut")
		}
		cut.Await(t)
		if got, err := sub.Receive(t.Context()); err != nil {
			t.Errorf("subscribing again: %v, %v", got, err)
		}
	})
}

func TestAPartitionDropsEverythingUntilItIsHealed(t *testing.T) {
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
			t.Errorf("the server ran %d calls, want only the one before the partition", n)
		}

		p.Partition(false)
		if err := idle.Ping(t.Context()).Err(); err != nil {
			t.Errorf("a connection that lost no bytes: %v", err)
		}
		if n, err := rdb.Incr(t.Context(), key).Result(); n != 2 || err != nil {
			t.Errorf("after the partition: %d, %v, want 2", n, err)
		}
	})
}

// A subscriber cannot notice that messages were dropped, so the end of a partition closes it.
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
			t.Errorf("the subscriber receives %v, want its connection closed", m)
		}
	})
}

func TestCloseAllClosesAndAcceptsAgain(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, rdb, direct *redis.Client, key string) {
		answer := make(chan error, 1)
		seen := p.Hold(Command("incr")) // shows that the request has arrived
		go func() { answer <- rdb.Incr(t.Context(), key).Err() }()
		seen.Await(t)
		p.CloseAll()
		if err := <-answer; err == nil {
			t.Error("a call in flight has a reply")
		}
		p.Release()
		if n, err := rdb.Incr(t.Context(), key).Result(); n != 2 || err != nil {
			t.Errorf("a new connection: %d, %v, want 2", n, err)
		}
	})
}

func TestAConnectionIsClosedWhileTheServerIsDown(t *testing.T) {
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
		t.Errorf("a connection while the server is down: %v, want it closed", err)
	}
	s.Restart(t)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after the restart: %v", err)
	}
}
