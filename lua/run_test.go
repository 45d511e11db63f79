package lua

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

func TestAScriptGetsItsKeyAndArguments(t *testing.T) {
	t.Parallel()
	lib := tree("echo.lua", "-- @include pair\nreturn {KEYS[1], #KEYS, pair(ARGV[1], ARGV[2])}",
		"include/pair.lua", "local function pair(a, b) return {a, b} end",
		"none.lua", "return nil", "hole.lua", "return {1, false, 3}")
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient, o Options) {
		l := load(t, lib, o)
		for _, test := range []struct {
			script string
			args   []any
			want   any
		}{
			{"echo", []any{"x\x00y", 7}, []any{"k", int64(1), []any{"x\x00y", "7"}}},
			{"none", nil, nil},
			{"hole", nil, []any{int64(1), nil, int64(3)}},
		} {
			got, err := l.Run(t.Context(), rdb, test.script, "k", test.args...)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("Run(%s) = %#v, %v, want %#v", test.script, got, err, test.want)
			}
		}
	})
}

func TestAServerThatForgotTheScriptIsToldAgain(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient, o Options) {
		l := load(t, tree("incr.lua", `return redis.call("INCR", KEYS[1])`), o)
		rdb.Ping(t.Context()) // the greeting of a new connection is not what is counted
		var sent []string
		rdb.AddHook(recorder(func(verb string) { sent = append(sent, verb) }))
		for i := range 4 {
			if i == 2 {
				if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			got, err := l.Run(t.Context(), rdb, "incr", "n")
			if err != nil || got != int64(i+1) {
				t.Errorf("Run = %v, %v, want %d", got, err, i+1)
			}
		}
		want := []string{"evalsha", "eval", "evalsha", "script", "evalsha", "eval", "evalsha"}
		if !reflect.DeepEqual(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
	})
}

func TestAnErrorSaysWhereItWasWritten(t *testing.T) {
	t.Parallel()
	lib := tree(
		"index.lua", "-- @include boom\n\nlocal x = tonumber(\"x\")\n-- here:\nreturn x.y",
		"error.lua", "\n\n-- @include boom\nboom(1)\nreturn 1",
		"unplaced.lua", "-- @include boom\n--\nboom(0)",
		"call.lua", "-- @include push\npush()\nreturn 1",
		"args.lua", "\nlocal x = redis.call(\"SET\", KEYS[1], nil)\nreturn x",
		"quoted.lua", "local x = 1\n\nerror(\"saw user_script:1: it\", 0)",
		"few.lua", "local x = redis.call(\"LPUSH\", KEYS[1])\nreturn x",
		"command.lua", "\nlocal x = redis.call(\"NOSUCH\")\nreturn x",
		"global.lua", "-- a\nlocal x = 1\n\nlocal y = unheard_of\nreturn x",
		"include/boom.lua", "-- boom\n--\nlocal function boom(level)\n  -- why\n  error(\"boom\", level)\nend",
		"include/push.lua", "-- push\n\nlocal function push()\n  local n = redis.call(\"LPUSH\", KEYS[1], \"x\")\n  return n\nend",
	)
	const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient, o Options) {
		l := load(t, lib, o)
		if err := rdb.Set(t.Context(), "k", "a string", 0).Err(); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			script, where string
			texts         []string // of Redis, and of miniredis if that is another
		}{
			{"index", "lua/index.lua:5", []string{"attempt to index local 'x' (a nil value)",
				"attempt to index a non-table object(nil) with key 'y'"}},
			{"error", "lua/include/boom.lua:5", []string{"boom"}},
			{"unplaced", "lua/include/boom.lua:5", []string{"boom"}},
			{"call", "lua/include/push.lua:4", []string{wrongType}},
			{"args", "lua/args.lua:2", []string{"Lua redis lib command arguments must be strings or integers"}},
			{"quoted", "lua/quoted.lua:3", []string{"saw lua/quoted.lua:1: it"}},
			{"few", "lua/few.lua:1", []string{"Wrong number of args calling Redis command from script",
				"wrong number of arguments for 'lpush' command"}},
			{"command", "lua/command.lua:2", []string{"Unknown Redis command called from script"}},
			{"global", "lua/global.lua:4", []string{"Script attempted to access nonexistent global variable 'unheard_of'"}},
		} {
			_, err := l.Run(t.Context(), rdb, test.script, "k")
			want := test.script + ": " + test.where + ": "
			var at *ScriptError
			if !errors.As(err, &at) || at.Script != test.script || at.Where != test.where {
				t.Errorf("Run(%s): %v\nwant a *ScriptError at %s", test.script, err, test.where)
				continue
			}
			if got := err.Error(); got != want+test.texts[0] && got != want+test.texts[len(test.texts)-1] {
				t.Errorf("Run(%s): %v\nwant %s%s", test.script, err, want, test.texts)
			}
			if !Raised(err) {
				t.Errorf("Raised(%v) = false, want true: Redis said so", err)
			}
		}
	})
}

func TestAScriptThatDoesNotCompileSaysWhere(t *testing.T) {
	t.Parallel()
	lib := tree("bad.lua", "-- bad\nlocal x = 1\n\nx y", "open.lua", "if 1 then")
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient, o Options) {
		l := load(t, lib, o)
		_, err := l.Run(t.Context(), rdb, "bad", "k")
		var at *ScriptError
		if !errors.As(err, &at) || at.Where != "lua/bad.lua:4" {
			t.Errorf("Run(bad): %v\nwant a *ScriptError at lua/bad.lua:4", err)
		}
		if _, err := l.Run(t.Context(), rdb, "open", "k"); !errors.As(err, &at) || at.Script != "open" {
			t.Errorf("Run(open): %v\nwant a *ScriptError", err)
		}
	})
}

// Miniredis takes level 2 for level 1, so this is about Redis alone.
func TestAnErrorMayBlameItsCaller(t *testing.T) {
	t.Parallel()
	l := load(t, tree(
		"caller.lua", "-- @include check\n\ncheck(1)\nreturn 1",
		"include/check.lua", "local function check(x)\n  error(\"not x\", 2)\nend"), Options{})
	_, err := l.Run(t.Context(), startRedis(t), "caller", "k")
	if want := "caller: lua/caller.lua:3: not x"; err == nil || err.Error() != want {
		t.Errorf("Run: %v\nwant %s", err, want)
	}
}

func TestTheAnswerOfRedisIsUnwrapped(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t)
	l := load(t, tree("push.lua", `return redis.call("LPUSH", KEYS[1], 1)`), Options{Shebang: true})

	rdb.Set(t.Context(), "k", "a string", 0)
	_, err := l.Run(t.Context(), rdb, "push", "k")
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("Run: %v\nwant WRONGTYPE to be found by redis.HasErrorPrefix", err)
	}

	// Refused before it runs: no line of ours is at fault.
	rdb.ConfigSet(t.Context(), "maxmemory", "1")
	_, err = l.Run(t.Context(), rdb, "push", "k")
	var at *ScriptError
	if !redis.IsOOMError(err) || !Raised(err) || errors.As(err, &at) {
		t.Errorf("Run: %v\nwant the OOM of Redis, and no *ScriptError", err)
	}
}

// Forms that a test cannot provoke on the servers at hand, or that only look alike.
func TestLocate(t *testing.T) {
	l := load(t, tree("s.lua", "-- s\nlocal x = 1\n\nreturn x"), Options{})
	for _, test := range []struct{ claim, text, want string }{
		{"Redis", "user_script:2: boom", "lua/s.lua:4: boom"},
		{"Redis, as a source", "on @user_script:1.", "on lua/s.lua:2."},
		{"miniredis, compiling", "<string> line:2(column:7) near 'x'", "lua/s.lua:4 near 'x'"},
		{"older miniredis", "<string>:2: boom", "lua/s.lua:4: boom"},
		{"miniredis", ":2: boom", "lua/s.lua:4: boom"},
		{"several", "a user_script:1: b\n :2: c", "a lua/s.lua:2: b\n lua/s.lua:4: c"},
		{"a line that is not there", "user_script:3: a", "user_script:3: a"},
		{"another number", "at 10:2:1 in :2 of my_user_script:2", "at 10:2:1 in :2 of my_user_script:2"},
	} {
		if got := l.Locate("s", test.text); got != test.want {
			t.Errorf("%s: Locate(%q) = %q, want %q", test.claim, test.text, got, test.want)
		}
	}
}

// A lost reply: the script has run, and the caller cannot know.
func TestALostReplyIsNeverRepeated(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"evalsha", "eval"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			socket := startServer(t)
			direct := client(t, &redis.Options{Network: "unix", Addr: socket})
			l := load(t, tree("incr.lua", `return redis.call("INCR", KEYS[1])`), Options{Shebang: true})
			if verb == "evalsha" {
				direct.ScriptLoad(t.Context(), l.Source("incr"))
			}

			lossy := client(t, &redis.Options{Addr: loseReply(t, socket, verb)})
			reply, err := l.Run(t.Context(), lossy, "incr", "n")
			if !errors.Is(err, io.EOF) || err.Error() != "incr: EOF" {
				t.Errorf("Run = %v, %v, want the error incr: EOF", reply, err)
			}
			if Raised(err) {
				t.Errorf("Raised(%v) = true, want false: nobody answered", err)
			}
			if n, _ := direct.Get(t.Context(), "n").Int(); n != 1 {
				t.Errorf("the script ran %d times, want 1", n)
			}

			// The proxy lets the rest pass, so only the client can have held back.
			if reply, err := l.Run(t.Context(), lossy, "incr", "n"); err != nil || reply != int64(2) {
				t.Errorf("the next Run = %v, %v, want 2", reply, err)
			}
		})
	}
}

func TestAnEndedContextIsNoAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := load(t, tree("one.lua", "return 1"), Options{})
	if _, err := l.Run(ctx, startMiniredis(t), "one", "k"); !errors.Is(err, context.Canceled) || Raised(err) {
		t.Errorf("Run: %v, Raised %v, want context canceled, false", err, Raised(err))
	}
}

func TestAClusterClientRoutesByTheKey(t *testing.T) {
	t.Parallel()
	low, high := miniredis.RunT(t), miniredis.RunT(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{
				{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: low.Addr()}}},
				{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: high.Addr()}}},
			}, nil
		},
	})
	t.Cleanup(func() { rdb.Close() })

	l := load(t, tree("set.lua", `return redis.call("SET", KEYS[1], ARGV[1])`), Options{})
	keys := map[string]*miniredis.Miniredis{"curfew:{2}": low, "curfew:{3}": low, "curfew:{0}": high, "curfew:{1}": high}
	for key, owner := range keys {
		if _, err := l.Run(t.Context(), rdb, "set", key, "x"); err != nil {
			t.Fatal(err)
		}
		if !owner.Exists(key) {
			t.Errorf("%s is not on the node that has its slot", key)
		}
	}
}

func TestRunOfAnUnknownScriptPanics(t *testing.T) {
	defer func() {
		if got, want := recover(), `lua: there is no script "gone"`; got != want {
			t.Errorf("panic %v, want %s", got, want)
		}
	}()
	l := load(t, tree("one.lua", "return 1"), Options{})
	l.Run(t.Context(), nil, "gone", "k")
}

// recorder is a hook that is told each command's name.
type recorder func(verb string)

func (recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r(cmd.Name())
		return next(ctx, cmd)
	}
}

func (recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// loseReply is a proxy in front of a server's socket. It passes the first verb on,
// waits for the reply, and then closes the connection instead of passing it back.
func loseReply(t *testing.T, socket, verb string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var lost atomic.Bool
	request := []byte("\r\n" + verb + "\r\n")

	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", socket)
			if err != nil {
				near.Close()
				return
			}
			var drop atomic.Bool
			go relay(far, near, func(b []byte) bool {
				if bytes.Contains(b, request) && lost.CompareAndSwap(false, true) {
					drop.Store(true)
				}
				return true
			})
			go relay(near, far, func([]byte) bool { return !drop.Load() })
		}
	}()
	return listener.Addr().String()
}

// relay copies until an end closes or pass refuses what was read, then closes both.
func relay(to, from net.Conn, pass func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil || !pass(b[:n]) {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
