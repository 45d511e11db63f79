package misuse

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// named are calls of all functions that take part in a namespace, by the role that makes them. They
// are accepted after prepare.
var named = []struct {
	role, function string
	reads, drains  bool // it changes nothing; it runs on a full Redis
	args           []any
}{
	{role: "producer", function: "curfew_open", drains: true},
	{role: "producer", function: "curfew_about", reads: true},
	{role: "producer", function: "curfew_enqueue", args: []any{"k", "id", "0-new", "timeout", "1m", "payload", strings.Repeat("p", 1000), "idempotency_key", "x"}},
	{role: "producer", function: "curfew_enqueue_many", args: []any{`[{"kind":"k","id":"0-new"},{"kind":"k","id":"0-run.c","delay":"1h"}]`}},
	{role: "producer", function: "curfew_get", reads: true, args: []any{"0-run"}},
	{role: "producer", function: "curfew_result", drains: true, args: []any{"0-run"}},
	{role: "producer", function: "curfew_cancel", drains: true, args: []any{"0-wait"}},
	{role: "producer", function: "curfew_resolve", drains: true, args: []any{"0-promise", "result", strings.Repeat("r", 1000)}},
	{role: "producer", function: "curfew_signal", drains: true, args: []any{"0-run", "go", "payload", "x"}},
	{role: "producer", function: "curfew_stats", reads: true},
	{role: "worker", function: "curfew_fetch", drains: true, args: []any{"w", "slots", 5, "seq", 2}},
	{role: "worker", function: "curfew_settle", drains: true, args: []any{"w", "0-run", 1, "result", strings.Repeat("r", 1000)}},
	{role: "worker", function: "curfew_settle", drains: true, args: []any{"w", "0-run", 1, "error", "e"}},
	{role: "worker", function: "curfew_heartbeat", drains: true, args: []any{"w", "claims", "0-run=1", "progress", "half"}},
	{role: "worker", function: "curfew_heartbeat", drains: true, args: []any{"w", "lease", "0s"}},
	{role: "reaper", function: "curfew_sweep", drains: true, args: []any{"r"}},
}

// prepare empties a server and makes a namespace with a task in each state.
func prepare(t *testing.T, admin *redis.Client) {
	t.Helper()
	_, err := admin.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.FlushDB(t.Context())
		for _, words := range [][]any{
			{"curfew_open"},
			{"curfew_enqueue", "k", "id", "0-run", "timeout", "1h", "max_retries", "1", "payload", strings.Repeat("p", 1000)},
			{"curfew_fetch", "w", "seq", "1"},
			{"curfew_enqueue", "k", "id", "0-wait", "timeout", "1h"},
			{"curfew_enqueue", "k", "id", "0-promise", "role", "promise"},
			{"curfew_enqueue", "k", "id", "0-late", "delay", "1ms"},
		} {
			p.Do(t.Context(), slices.Concat([]any{"FCALL", words[0], 1, "curfew:{0}"}, words[1:])...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func callNamed(t *testing.T, rdb *redis.Client, command, function string, args []any) error {
	return rdb.Do(t.Context(), slices.Concat([]any{command, function, 1, "curfew:{0}"}, args)...).Err()
}

// A replica answers the functions that read, by FCALL_RO, and refuses the others.
func TestFunctionsOnAReplica(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	admin := server.Client(t)
	if _, err := openAs(admin, "", quiet); err != nil {
		t.Fatal(err)
	}
	prepare(t, admin)
	host, port, _ := strings.Cut(server.Addr, ":")
	replica := redistest.Start(t, "--replicaof", host+" "+port).Client(t)
	want := redistest.Dump(t, admin, "curfew:")
	await.Until(t, "the replica has the data", func() bool { return redistest.Dump(t, replica, "curfew:") == want })
	for _, call := range named {
		for _, command := range []string{"FCALL", "FCALL_RO"} {
			err := callNamed(t, replica, command, call.function, call.args)
			if call.reads && err != nil || !call.reads && (err == nil || !strings.HasPrefix(err.Error(), "READONLY ")) {
				t.Errorf("%s %s: error %v, want an answer: %v, else READONLY", command, call.function, err, call.reads)
			}
		}
	}
}

// A full Redis refuses new tasks, and nothing of them is there. All that ends tasks or waits for them goes on.
func TestFunctionsOnAFullRedis(t *testing.T) {
	t.Parallel()
	admin := redistest.Start(t).Client(t)
	if _, err := openAs(admin, "", quiet); err != nil {
		t.Fatal(err)
	}
	memory := func(limit string) {
		if err := admin.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range named {
		memory("0")
		prepare(t, admin)
		before := redistest.Dump(t, admin, "curfew:")
		memory("1")
		err := callNamed(t, admin, "FCALL", call.function, call.args)
		if call.reads || call.drains {
			if err != nil {
				t.Errorf("%s: %v", call.function, err)
			}
		} else if after := redistest.Dump(t, admin, "curfew:"); err == nil || !strings.HasPrefix(err.Error(), "OOM ") || after != before {
			t.Errorf("%s: error %v, want OOM; it wrote:\n%s", call.function, err, redistest.Diff(before, after))
		}
	}
}

// Each function needs no more than the rights that docs/how-to/security.md gives its role. If one of them is missing, the
// function does all of its work without it, or nothing and returns an error of Redis.
func TestAFunctionWithoutARightWritesNothing(t *testing.T) {
	t.Parallel()
	admin := redistest.Start(t).Client(t)
	if _, err := openAs(admin, "", quiet); err != nil {
		t.Fatal(err)
	}
	refusals := 0
	for _, role := range []string{"producer", "worker", "reaper"} {
		rdb := otherLanguage(t, admin, role)
		for _, call := range named {
			if call.role != role {
				continue
			}
			prepare(t, admin)
			if err := callNamed(t, rdb, "FCALL", call.function, call.args); err != nil {
				t.Errorf("%s %v as the %s: %v", call.function, call.args, role, err)
			}
			for _, rule := range rules(t, role) {
				command, is := strings.CutPrefix(rule, "+")
				if !is || strings.Contains(command, "|") || command == "fcall" || command == "subscribe" || command == "blpop" {
					continue
				}
				prepare(t, admin)
				before := redistest.Dump(t, admin, "curfew:")
				grant(t, admin, role, "-"+command)
				err := callNamed(t, rdb, "FCALL", call.function, call.args)
				grant(t, admin, role, "+"+command)
				if err == nil {
					continue
				}
				refusals++
				if text := err.Error(); !strings.HasPrefix(text, "NOPERM ") && !strings.HasPrefix(text, "CURFEW NAMESPACE the Redis user lacks rights: ") {
					t.Errorf("%s without %s: error %v, want NOPERM", call.function, command, err)
				}
				if after := redistest.Dump(t, admin, "curfew:"); after != before {
					t.Errorf("%s without %s wrote:\n%s", call.function, command, redistest.Diff(before, after))
				}
			}
		}
	}
	t.Logf("%d calls were refused", refusals)
	if refusals < 100 {
		t.Error("want 100 or more")
	}
}

// A reader calls the functions that change nothing with fcall_ro, and no other function.
func TestAReaderInAnotherLanguage(t *testing.T) {
	t.Parallel()
	admin := redistest.Start(t).Client(t)
	if _, err := openAs(admin, "", quiet); err != nil {
		t.Fatal(err)
	}
	prepare(t, admin)
	words := slices.DeleteFunc(rules(t, "reader"), func(rule string) bool { return strings.HasPrefix(rule, "+eval") })
	reader := user(t, admin, "reader", append(words, "+fcall_ro")...)
	for _, call := range named {
		err := callNamed(t, reader, "FCALL_RO", call.function, call.args)
		if call.reads != (err == nil) {
			t.Errorf("%s: error %v, want one: %v", call.function, err, !call.reads)
		}
	}
	if err := callNamed(t, reader, "FCALL", "curfew_get", []any{"0-run"}); err == nil || !strings.HasPrefix(err.Error(), "NOPERM ") {
		t.Errorf("FCALL as a reader: error %v, want NOPERM", err)
	}
}
