package lua

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/textproto"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestACallGetsItsKeyAndArguments(t *testing.T) {
	t.Parallel()
	lib := tree("call/echo.lua", "-- @use p/pair\nlocal function echo(keys, argv)\n  return {keys[1], #keys, pair(argv[1], argv[2])}\nend",
		"p/pair.lua", "local function pair(a, b) return {a, b} end",
		"call/none.lua", "local function none() return nil end", "call/hole.lua", "local function hole() return {1, false, 3} end")
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

// incr is a library of one call.
var incr = tree("call/incr.lua", `local function incr(keys) return redis.call("INCR", keys[1]) end`)

func TestCallsAreSentAgainToAServerThatLostThem(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient, o Options) {
		l := load(t, incr, o)
		rdb.Ping(t.Context()) // connect first: the commands of a new connection are not counted
		sent := record(rdb)
		for i := range 4 {
			if i == 2 {
				flush(t, rdb, o)
			}
			got, err := l.Run(t.Context(), rdb, "incr", "n")
			if err != nil || got != int64(i+1) {
				t.Errorf("Run = %v, %v, want %d", got, err, i+1)
			}
		}
		want := []string{"evalsha", "eval", "evalsha", "script", "evalsha", "eval", "evalsha"}
		if o.Functions {
			want = []string{"fcall", "function", "fcall", "fcall", "function", "fcall", "function", "fcall", "fcall"}
		}
		if got := sent(); !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
	})
}

func flush(t *testing.T, rdb redis.UniversalClient, o Options) {
	t.Helper()
	if o.Functions {
		must(t, rdb.FunctionFlush(t.Context()))
	} else {
		must(t, rdb.ScriptFlush(t.Context()))
	}
}

// All clients find that the server has no library before the first of them loads it.
func TestClientsCanLoadTheLibraryAtTheSameTime(t *testing.T) {
	t.Parallel()
	const clients = 8
	socket := startServer(t)
	var loading, done sync.WaitGroup
	loading.Add(clients)
	for range clients {
		rdb := client(t, &redis.Options{Network: "unix", Addr: socket})
		rdb.AddHook(recorder(func(verb string) {
			if verb == "function" {
				loading.Done()
				loading.Wait()
			}
		}))
		l := load(t, incr, Options{Functions: true})
		done.Go(func() {
			if _, err := l.Run(t.Context(), rdb, "incr", "n"); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	done.Wait()
	rdb := client(t, &redis.Options{Network: "unix", Addr: socket})
	if n, _ := rdb.Get(t.Context(), "n").Int(); n != clients {
		t.Errorf("the call ran %d times, want %d", n, clients)
	}
}

// Two versions of a program have different libraries and use one server.
func TestTwoVersionsShareAServer(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t)
	by := func(n string) *Library {
		return load(t, tree("call/add.lua", `local function add(keys) return redis.call("INCRBY", keys[1], `+n+`) end`), Options{Functions: true})
	}
	one, ten := by("1"), by("10")
	for i, test := range []struct {
		l    *Library
		want int64
	}{{one, 1}, {ten, 11}, {one, 12}, {ten, 22}} {
		if got, err := test.l.Run(t.Context(), rdb, "add", "n"); err != nil || got != test.want {
			t.Errorf("call %d: Run = %v, %v, want %d", i, got, err, test.want)
		}
	}
}

func TestCallsAreSentAsScriptsIfTheLibraryIsRefused(t *testing.T) {
	t.Parallel()
	lib := tree("call/add.lua", `-- Flags allow-oom
local function add(keys) return redis.call("INCR", keys[1]) end`,
		"call/raise.lua", "-- Flags allow-oom\n\nlocal function raise() error(\"boom\") end")
	for _, test := range []struct {
		why    string
		again  time.Duration // FUNCTION LOAD is sent again after it
		refuse func(t *testing.T, admin *redis.Client) *redis.Options
		allow  func(t *testing.T, admin *redis.Client)
	}{
		{"the server is full", time.Second,
			func(t *testing.T, admin *redis.Client) *redis.Options {
				must(t, admin.ConfigSet(t.Context(), "maxmemory", "1"))
				return &redis.Options{}
			},
			func(t *testing.T, admin *redis.Client) { must(t, admin.ConfigSet(t.Context(), "maxmemory", "0")) }},
		{"the user lacks the right", time.Minute,
			func(t *testing.T, admin *redis.Client) *redis.Options {
				must(t, admin.Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "&*", "+@all", "-function"))
				return &redis.Options{Username: "app", Password: "secret"}
			},
			func(t *testing.T, admin *redis.Client) {
				must(t, admin.Do(t.Context(), "acl", "setuser", "app", "+function"))
			}},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			socket := startServer(t)
			admin := client(t, &redis.Options{Network: "unix", Addr: socket})
			o := test.refuse(t, admin)
			o.Network, o.Addr = "unix", socket
			rdb := client(t, o)
			rdb.Ping(t.Context())
			l := load(t, lib, Options{Functions: true})
			sent := record(rdb)

			start := time.Now()
			for want := range int64(3) {
				if got, err := l.Run(t.Context(), rdb, "add", "n"); err != nil || got != want+1 {
					t.Errorf("Run = %v, %v, want %d", got, err, want+1)
				}
			}
			// After a refusal FUNCTION LOAD is not sent again until refused has passed.
			if until := time.Unix(0, l.refused.Load()); until.Before(start.Add(test.again)) || until.After(time.Now().Add(test.again)) {
				t.Errorf("calls are sent as scripts until %v after the first, want %v", until.Sub(start), test.again)
			}
			if got, want := sent(), []string{"fcall", "function", "evalsha", "eval", "evalsha", "evalsha"}; !slices.Equal(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
			if _, err := l.Run(t.Context(), rdb, "raise", "n"); err == nil || err.Error() != "raise: lua/call/raise.lua:3: boom" {
				t.Errorf("Run: %v\nwant raise: lua/call/raise.lua:3: boom", err)
			}

			test.allow(t, admin)
			l.refused.Store(0) // as if that time were over
			sent()
			if got, err := l.Run(t.Context(), rdb, "add", "n"); err != nil || got != int64(4) {
				t.Errorf("Run = %v, %v, want 4", got, err)
			}
			if got, want := sent(), []string{"fcall", "function", "fcall"}; !slices.Equal(got, want) {
				t.Errorf("with the right, sent %q, want %q", got, want)
			}
		})
	}
}

func must(t *testing.T, cmd redis.Cmder) {
	t.Helper()
	if err := cmd.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestAnErrorNamesFileAndLine(t *testing.T) {
	t.Parallel()
	lib := tree(
		"call/index.lua", "local function index()\n\n  local x = tonumber(\"x\")\n  -- here:\n  return x.y\nend",
		"call/raise.lua", "\n\n-- @use p/boom\nlocal function raise()\n  boom(1)\n  return 1\nend",
		"call/unplaced.lua", "-- @use p/boom\n--\nlocal function unplaced()\n  boom(0)\nend",
		"call/call.lua", "-- @use p/push\nlocal function call(keys)\n  push(keys)\n  return 1\nend",
		"call/args.lua", "local function args(keys)\n\n  local x = redis.call(\"SET\", keys[1], nil)\n  return x\nend",
		"call/quoted.lua", "local function quoted()\n\n  error(\"saw \" .. CHUNK .. \":1: it\", 0)\nend",
		"call/few.lua", "local function few(keys)\n  local x = redis.call(\"LPUSH\", keys[1])\n  return x\nend",
		"call/command.lua", "\nlocal function command()\n  local x = redis.call(\"NOSUCH\")\n  return x\nend",
		"call/global.lua", "-- a\nlocal x = 1\n\nlocal function global()\n  local y = unheard_of\n  return x, y\nend",
		"p/boom.lua", "-- boom\n--\nlocal function boom(level)\n  -- why\n  error(\"boom\", level)\nend",
		"p/push.lua", "-- push\n\nlocal function push(keys)\n  local n = redis.call(\"LPUSH\", keys[1], \"x\")\n  return n\nend",
	).(fstest.MapFS)
	const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient, o Options) {
		chunk, lib := "user_script", maps.Clone(lib)
		first := "lua/call/quoted.lua:1"
		if o.Functions {
			chunk, first = "user_function", "lua:1"
		}
		quoted := strings.Replace(string(lib["call/quoted.lua"].Data), "CHUNK", strconv.Quote(chunk), 1)
		lib["call/quoted.lua"] = &fstest.MapFile{Data: []byte(quoted)}
		l := load(t, lib, o)
		must(t, rdb.Set(t.Context(), "k", "a string", 0))
		for _, test := range []struct {
			call, where string
			texts       []string // of Redis, and of miniredis if it differs
		}{
			{"index", "lua/call/index.lua:5", []string{"attempt to index local 'x' (a nil value)",
				"attempt to index a non-table object(nil) with key 'y'"}},
			{"raise", "lua/p/boom.lua:5", []string{"boom"}},
			{"unplaced", "lua/p/boom.lua:5", []string{"boom"}},
			{"call", "lua/p/push.lua:4", []string{wrongType}},
			{"args", "lua/call/args.lua:3", []string{"Lua redis lib command arguments must be strings or integers"}},
			{"quoted", "lua/call/quoted.lua:3", []string{"saw " + first + ": it"}},
			{"few", "lua/call/few.lua:2", []string{"Wrong number of args calling Redis command from script",
				"wrong number of arguments for 'lpush' command"}},
			{"command", "lua/call/command.lua:3", []string{"Unknown Redis command called from script"}},
			{"global", "lua/call/global.lua:5", []string{"Script attempted to access nonexistent global variable 'unheard_of'"}},
		} {
			_, err := l.Run(t.Context(), rdb, test.call, "k")
			want := test.call + ": " + test.where + ": "
			var at *ScriptError
			if !errors.As(err, &at) || at.Script != test.call || at.Where != test.where {
				t.Errorf("Run(%s): %v\nwant a *ScriptError at %s", test.call, err, test.where)
				continue
			}
			if got := err.Error(); got != want+test.texts[0] && got != want+test.texts[len(test.texts)-1] {
				t.Errorf("Run(%s): %v\nwant %s%s", test.call, err, want, test.texts)
			}
			if !Raised(err) {
				t.Errorf("Raised(%v) = false, want true: Redis replied", err)
			}
		}
	})
}

// If a call does not compile, the server refuses the whole library. The error of the script names the line.
func TestACompileErrorNamesFileAndLine(t *testing.T) {
	t.Parallel()
	lib := tree("call/bad.lua", "-- bad\nlocal bad = 1\n\nx y", "call/open.lua", "local open = 1\nif 1 then")
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient, o Options) {
		l := load(t, lib, o)
		_, err := l.Run(t.Context(), rdb, "bad", "k")
		var at *ScriptError
		if !errors.As(err, &at) || at.Where != "lua/call/bad.lua:4" {
			t.Errorf("Run(bad): %v\nwant a *ScriptError at lua/call/bad.lua:4", err)
		}
		if _, err := l.Run(t.Context(), rdb, "open", "k"); !errors.As(err, &at) || at.Script != "open" {
			t.Errorf("Run(open): %v\nwant a *ScriptError", err)
		}
	})
}

// Miniredis treats level 2 as level 1, so this test runs on Redis only.
func TestAnErrorCanNameTheLineOfItsCaller(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t)
	for _, o := range []Options{{}, {Functions: true}} {
		l := load(t, tree(
			"call/caller.lua", "-- @use p/check\n\nlocal function caller()\n  check(1)\n  return 1\nend",
			"p/check.lua", "local function check(x)\n  error(\"not x\", 2)\nend"), o)
		_, err := l.Run(t.Context(), rdb, "caller", "k")
		if want := "caller: lua/call/caller.lua:4: not x"; err == nil || err.Error() != want {
			t.Errorf("Run with %+v: %v\nwant %s", o, err, want)
		}
	}
}

func TestTheReplyOfRedisIsUnwrapped(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Functions: true}} {
		rdb := startRedis(t)
		l := load(t, tree("call/push.lua", `local function push(keys) return redis.call("LPUSH", keys[1], 1) end`), o)

		rdb.Set(t.Context(), "k", "a string", 0)
		_, err := l.Run(t.Context(), rdb, "push", "k")
		if !redis.HasErrorPrefix(err, "WRONGTYPE") {
			t.Errorf("Run: %v\nwant WRONGTYPE to be found by redis.HasErrorPrefix", err)
		}

		// Redis refuses the function before it runs, so no line of our files is at fault. A
		// script without a shebang runs, and its command is refused.
		rdb.ConfigSet(t.Context(), "maxmemory", "1")
		_, err = l.Run(t.Context(), rdb, "push", "k")
		var at *ScriptError
		if !redis.IsOOMError(err) || !Raised(err) || errors.As(err, &at) == o.Functions {
			t.Errorf("Run with %+v: %v\nwant the OOM error of Redis, and a *ScriptError: %t", o, err, !o.Functions)
		}
	}
}

// A user needs the right to FCALL, EVALSHA or EVAL. It needs FUNCTION only if no other client
// has loaded the library.
func TestACallUsesACommandThatTheUserCanRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		claim, lacks string
		loaded       bool   // another client has loaded the library
		known        bool   // another client has loaded the script
		sends        string // the commands of three calls
		says         string // in the error, if every command is refused
	}{
		{"no FCALL: it is sent once", "-fcall", true, false, "fcall evalsha eval evalsha evalsha", ""},
		{"no FCALL and no FUNCTION", "-fcall -function", false, false, "fcall evalsha eval evalsha evalsha", ""},
		{"no FCALL and no EVALSHA", "-fcall -evalsha", true, false, "fcall evalsha eval evalsha eval evalsha eval", ""},
		{"no FCALL and no EVAL, and the script is known", "-fcall -eval", true, true, "fcall evalsha evalsha evalsha", ""},
		{"no FUNCTION, and the library is loaded", "-function", true, false, "fcall fcall fcall", ""},
		{"no FUNCTION, and the library is not loaded", "-function", false, false, "fcall function evalsha eval evalsha evalsha", ""},
		{"no scripts", "-eval -evalsha -script", false, false, "fcall function fcall fcall fcall", ""},
		{"only FCALL, and the library is loaded", "-@scripting +fcall", true, false, "fcall fcall fcall", ""},
		{"only FCALL, and the library is not loaded: each call tries again", "-@scripting +fcall", false, false, strings.Repeat("fcall function evalsha eval ", 3), "function|load"},
		{"no right to any command", "-@scripting", true, true, strings.Repeat("fcall evalsha eval ", 3), "'fcall'"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			socket := startServer(t)
			admin := client(t, &redis.Options{Network: "unix", Addr: socket})
			rule := []any{"acl", "setuser", "app", "on", ">secret", "~*", "&*", "+@all"}
			for word := range strings.FieldsSeq(test.lacks) {
				rule = append(rule, word)
			}
			must(t, admin.Do(t.Context(), rule...))
			l := load(t, incr, Options{Functions: true})
			if test.loaded {
				must(t, admin.FunctionLoad(t.Context(), l.Text()))
			}
			if test.known {
				must(t, admin.ScriptLoad(t.Context(), l.Source("incr")))
			}
			rdb := client(t, &redis.Options{Network: "unix", Addr: socket, Username: "app", Password: "secret"})
			rdb.Ping(t.Context())
			sent := record(rdb)
			for i := range int64(3) {
				got, err := l.Run(t.Context(), rdb, "incr", "n")
				switch {
				case test.says == "" && (err != nil || got != i+1):
					t.Errorf("Run = %v, %v, want %d", got, err, i+1)
				case test.says != "" && (!MayNotRun(err) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "'eval'")):
					t.Errorf("Run: %v\nwant a refusal that names %s and eval", err, test.says)
				}
			}
			if got := strings.Join(sent(), " "); got != strings.TrimSpace(test.sends) {
				t.Errorf("sent %s\nwant %s", got, test.sends)
			}
			if test.says == "" {
				return
			}
			// With the right, or with the library loaded, the next call runs.
			if test.loaded {
				must(t, admin.Do(t.Context(), "acl", "setuser", "app", "+fcall"))
			} else {
				must(t, admin.FunctionLoad(t.Context(), l.Text()))
			}
			if got, err := l.Run(t.Context(), rdb, "incr", "n"); err != nil || got != int64(1) {
				t.Errorf("with the right: Run = %v, %v, want 1", got, err)
			}
		})
	}
}

// A refused key is not a reason to try a script.
func TestARefusedKeyIsNotAReasonForAScript(t *testing.T) {
	t.Parallel()
	socket := startServer(t)
	admin := client(t, &redis.Options{Network: "unix", Addr: socket})
	must(t, admin.Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~other", "&*", "+@all"))
	rdb := client(t, &redis.Options{Network: "unix", Addr: socket, Username: "app", Password: "secret"})
	rdb.Ping(t.Context())
	sent := record(rdb)
	l := load(t, incr, Options{Functions: true})
	_, err := l.Run(t.Context(), rdb, "incr", "n")
	if !redis.HasErrorPrefix(err, "NOPERM") || !Raised(err) || MayNotRun(err) {
		t.Errorf("Run: %v\nwant NOPERM for the key", err)
	}
	if got := sent(); !slices.Equal(got, []string{"fcall"}) {
		t.Errorf("sent %q, want fcall", got)
	}
}

// A server on which FCALL is renamed is like a server without Functions.
func TestCallsAreSentAsScriptsIfFCALLIsRenamed(t *testing.T) {
	t.Parallel()
	rdb := client(t, &redis.Options{Network: "unix", Addr: startServer(t, "--rename-command", "FCALL", "")})
	l := load(t, incr, Options{Functions: true})
	for i := range int64(2) {
		if got, err := l.Run(t.Context(), rdb, "incr", "n"); err != nil || got != i+1 {
			t.Errorf("Run = %v, %v, want %d", got, err, i+1)
		}
	}
}

// The texts are forms that the test servers do not produce, and texts that only look like positions.
func TestLocate(t *testing.T) {
	l := load(t, tree("call/r.lua", "-- r\nlocal r = 1", "call/s.lua", "-- s\nlocal x = 1\n\nlocal s = x"), Options{})
	for _, test := range []struct{ claim, text, want string }{
		{"a script", "user_script:4: boom", "lua/call/s.lua:4: boom"},
		{"a script, as a source", "on @user_script:3.", "on lua/call/s.lua:2."},
		{"a function", "user_function:7: boom", "lua/call/s.lua:2: boom"},
		{"a function, as a source", "on @user_function:4.", "on lua/call/r.lua:2."},
		{"miniredis, compiling", "<string> line:4(column:7) near 'x'", "lua/call/s.lua:4 near 'x'"},
		{"older miniredis", "<string>:4: boom", "lua/call/s.lua:4: boom"},
		{"miniredis", ":4: boom", "lua/call/s.lua:4: boom"},
		{"several", "a user_script:3: b\n :4: c", "a lua/call/s.lua:2: b\n lua/call/s.lua:4: c"},
		{"a line behind the last", "user_script:7: a", "user_script:7: a"},
		{"a number that is not a position", "at 10:2:1 in :2 of my_user_script:2", "at 10:2:1 in :2 of my_user_script:2"},
	} {
		if got := l.Locate("s", test.text); got != test.want {
			t.Errorf("%s: Locate(%q) = %q, want %q", test.claim, test.text, got, test.want)
		}
	}
}

// The reply is lost: the call has run, and the caller cannot know.
func TestACallWhoseReplyIsLostIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"fcall", "evalsha", "eval"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			socket := startServer(t)
			direct := client(t, &redis.Options{Network: "unix", Addr: socket})
			l := load(t, incr, Options{Functions: verb == "fcall"})
			switch verb {
			case "fcall":
				must(t, direct.FunctionLoad(t.Context(), l.Text()))
			case "evalsha":
				must(t, direct.ScriptLoad(t.Context(), l.Source("incr")))
			}

			lossy := client(t, &redis.Options{Addr: loseReply(t, socket, verb)})
			reply, err := l.Run(t.Context(), lossy, "incr", "n")
			if !errors.Is(err, io.EOF) || err.Error() != "incr: EOF" {
				t.Errorf("Run = %v, %v, want the error incr: EOF", reply, err)
			}
			if Raised(err) {
				t.Errorf("Raised(%v) = true, want false: there was no reply", err)
			}
			if n, _ := direct.Get(t.Context(), "n").Int(); n != 1 {
				t.Errorf("the call ran %d times, want 1", n)
			}

			// The proxy passes all later commands, so the client did not repeat the call.
			if reply, err := l.Run(t.Context(), lossy, "incr", "n"); err != nil || reply != int64(2) {
				t.Errorf("the next Run = %v, %v, want 2", reply, err)
			}
		})
	}
}

// The reply to FUNCTION LOAD can be lost too. The library can be loaded twice, and the call
// has not run.
func TestTheLibraryIsLoadedAgainAfterALostReply(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		claim   string
		retries int
		want    any
	}{
		{"go-redis loads it again", 3, int64(1)},
		{"a client without retries returns the error", -1, nil},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			socket := startServer(t)
			l := load(t, incr, Options{Functions: true})
			lossy := client(t, &redis.Options{Addr: loseReply(t, socket, "function"), MaxRetries: test.retries})
			reply, err := l.Run(t.Context(), lossy, "incr", "n")
			if reply != test.want || test.want == nil && (!errors.Is(err, io.EOF) || Raised(err)) {
				t.Errorf("Run = %v, %v, want %v", reply, err, test.want)
			}
			if l.refused.Load() != 0 {
				t.Error("a lost reply was treated as a refusal")
			}
			ran := int64(0)
			if test.want != nil {
				ran = 1
			}
			if reply, err := l.Run(t.Context(), lossy, "incr", "n"); err != nil || reply != ran+1 {
				t.Errorf("the next Run = %v, %v, want %d", reply, err, ran+1)
			}
		})
	}
}

func TestAnEndedContextIsNotAReply(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := load(t, tree("call/one.lua", "local function one() return 1 end"), Options{})
	if _, err := l.Run(ctx, startMiniredis(t), "one", "k"); !errors.Is(err, context.Canceled) || Raised(err) {
		t.Errorf("Run: %v, Raised %v, want context canceled, false", err, Raised(err))
	}
}

// Two servers act as the masters of a cluster. The first call for a key of a master loads the
// library there.
func TestAClusterClientRoutesByTheKey(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, low redis.UniversalClient, o Options) {
		high := startMiniredis(t)
		if o.Functions {
			high = startRedis(t)
		}
		nodes := map[string]redis.UniversalClient{"low:1": low, "high:1": high}
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{
					{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: "low:1"}}},
					{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "high:1"}}},
				}, nil
			},
			Dialer: func(_ context.Context, _, addr string) (net.Conn, error) {
				o := nodes[addr].(*redis.Client).Options()
				return net.Dial(o.Network, o.Addr)
			},
		})
		t.Cleanup(func() { rdb.Close() })

		l := load(t, tree("call/set.lua", `local function set(keys, argv) return redis.call("SET", keys[1], argv[1]) end`), o)
		keys := map[string]redis.UniversalClient{"curfew:{2}": low, "curfew:{3}": low, "curfew:{0}": high, "curfew:{1}": high}
		for key, owner := range keys {
			if _, err := l.Run(t.Context(), rdb, "set", key, "x"); err != nil {
				t.Fatal(err)
			}
			if owner.Exists(t.Context(), key).Val() != 1 {
				t.Errorf("%s is not on the node that has its slot", key)
			}
		}
		if o.Functions {
			for addr, node := range nodes {
				if n, err := node.FunctionList(t.Context(), redis.FunctionListQuery{}).Result(); len(n) != 1 {
					t.Errorf("%s has the libraries %v, %v, want one", addr, n, err)
				}
			}
		}
	})
}

// A slot has moved, and the client does not know it: FCALL follows the key to the new master.
// FUNCTION LOAD has no key and is sent to the old master.
func TestACallFollowsItsKeyToAnotherMaster(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"-ERR Library 'curfew' already exists", "-READONLY You can't write against a read only replica."} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			now := startRedis(t).(*redis.Client)
			nodes := map[string]*redis.Options{
				"old:1": {Network: "tcp", Addr: oldMaster(t, "-MOVED 4813 now:1", answer)},
				"now:1": now.Options(),
			}
			rdb := redis.NewClusterClient(&redis.ClusterOptions{
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: "old:1"}}}}, nil
				},
				Dialer: func(_ context.Context, _, addr string) (net.Conn, error) {
					return net.Dial(nodes[addr].Network, nodes[addr].Addr)
				},
			})
			t.Cleanup(func() { rdb.Close() })
			l := load(t, incr, Options{Functions: true})
			for want := range int64(3) {
				if got, err := l.Run(t.Context(), rdb, "incr", "n"); err != nil || got != want+1 {
					t.Errorf("Run = %v, %v, want %d", got, err, want+1)
				}
			}
			if l.refused.Load() != 0 {
				t.Error("the reply of the old master was treated as a refusal of the new master")
			}
		})
	}
}

// oldMaster starts a server that has lost its slots. It replies to every call with moved, to
// FUNCTION LOAD with function, and to the commands of a new connection with an error that
// clients accept.
func oldMaster(t *testing.T, moved, function string) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := textproto.NewReader(bufio.NewReader(conn))
		for {
			verb := ""
			head, err := in.ReadLine() // *3
			n, _ := strconv.Atoi(strings.TrimPrefix(head, "*"))
			for i := range n {
				size, _ := in.ReadLine() // $5
				length, _ := strconv.Atoi(strings.TrimPrefix(size, "$"))
				word := make([]byte, length+2)
				if _, err = io.ReadFull(in.R, word); i == 0 {
					verb = strings.ToLower(string(word[:length]))
				}
			}
			if err != nil {
				return
			}
			answer := "-ERR unknown command"
			switch verb {
			case "fcall", "evalsha", "eval":
				answer = moved
			case "function":
				answer = function
			}
			if _, err := io.WriteString(conn, answer+"\r\n"); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String()
}

func TestRunOfAnUnknownCallPanics(t *testing.T) {
	defer func() {
		if got, want := recover(), `lua: there is no call "gone"`; got != want {
			t.Errorf("panic %v, want %s", got, want)
		}
	}()
	l := load(t, tree("call/one.lua", "local function one() return 1 end"), Options{})
	l.Run(t.Context(), nil, "gone", "k")
}

// record returns a function that returns the commands sent since it was last called.
func record(rdb redis.UniversalClient) func() []string {
	var sent []string
	rdb.AddHook(recorder(func(verb string) { sent = append(sent, verb) }))
	return func() []string {
		defer func() { sent = nil }()
		return sent
	}
}

// recorder is a hook that gets the name of each command.
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

// loseReply starts a proxy in front of a server's socket. It passes the first command verb to
// the server, waits for the reply, and then closes the connection without passing the reply.
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

// relay copies until a connection closes or pass returns false, then closes both.
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
