package lua

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const testRoot = "curfew:{0}"

// namespace is a new namespace on a server, and the calls of this package.
type namespace struct {
	testing.TB
	rdb     redis.UniversalClient
	library *Library
}

// onNamespaces runs a test on a new namespace of a real Redis, and on one of miniredis.
func onNamespaces(t *testing.T, test func(n *namespace)) {
	t.Parallel()
	for _, kind := range []int{0, 2} {
		t.Run(kinds[kind].name, func(t *testing.T) {
			t.Parallel()
			l, err := Load(kinds[kind].o)
			if err != nil {
				t.Fatal(err)
			}
			n := &namespace{t, kinds[kind].start(t), l}
			n.call("open", "2", "1", "none")
			test(n)
		})
	}
}

// call makes a call and returns its reply.
func (n *namespace) call(name string, args ...any) []any {
	n.Helper()
	reply, err := n.library.Run(n.Context(), n.rdb, name, testRoot, args...)
	if err != nil {
		n.Fatal(err)
	}
	return reply.([]any)
}

// gives makes a call and compares its reply, as text, with a wanted one.
func (n *namespace) gives(want, name string, args ...any) {
	n.Helper()
	if got := fmt.Sprint(n.call(name, args...)); got != "["+want+"]" {
		n.Errorf("%s %.200q = %.300s, want [%s]", name, args, got, want)
	}
}

// enqueue enqueues tasks of kind k in queue q with one payload, and more fields.
func (n *namespace) enqueue(payload string, ids []string, fields ...any) {
	n.Helper()
	args := append([]any{"1", 2 + len(fields)/2, "kind", "k", "queue", "q"}, fields...)
	for _, id := range ids {
		args = append(args, "1", id, payload)
	}
	for i, answer := range n.call("enqueue", args...) {
		if _, text := answer.(string); !text {
			n.Fatalf("enqueue %s = %v", ids[i], answer)
		}
	}
}

// fetch returns the claims of a fetch from queue q, five values each.
func (n *namespace) fetch(worker string, seq, most int) []any {
	n.Helper()
	return n.call("fetch", worker, seq, most, 60000, 0, "q", most)[1].([]any)[1:]
}

// ids returns the first of each five values.
func ids(claims []any) []string {
	var list []string
	for i := 0; i < len(claims); i += 5 {
		list = append(list, claims[i].(string))
	}
	return list
}

// numbered returns the ids 0-<letter>001, 0-<letter>002, ….
func numbered(letter string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("0-%s%03d", letter, i+1)
	}
	return list
}

// values returns a list of name and value by name.
func values(list any) map[string]string {
	byName, words := map[string]string{}, list.([]any)
	for i := 0; i+1 < len(words); i += 2 {
		byName[words[i].(string)] = fmt.Sprint(words[i+1])
	}
	return byName
}

func TestAFetchReturnsUpTo500TasksAndAfterOutcomesUpTo600WithThem(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		for _, letter := range []string{"a", "b", "c", "d"} {
			n.enqueue("", numbered(letter, 300))
		}
		claims := n.fetch("w", 1, 1000)
		if len(claims) != 5*500 {
			n.Fatalf("fetch of 1000 returned %d tasks, want 500", len(claims)/5)
		}
		args := []any{"w", "c1", 300}
		for i := 0; i < 5*300; i += 5 {
			args = append(args, claims[i], claims[i+1], "complete", "")
		}
		reply := n.call("settle", append(args, 2, 1000, 60000, 0, "q", 1000)...)
		if taken := len(reply[2].([]any)[1:]) / 5; taken != 300 {
			n.Errorf("settle of 300 outcomes took %d tasks, want 300", taken)
		}
		for _, ask := range [][]any{nil, {3, 0, 60000, 0, "q", 1}} {
			if reply := n.call("settle", append([]any{"w", "c2", 0}, ask...)...); fmt.Sprint(reply[1:]) != "[[] [1000]]" {
				n.Errorf("settle that requests %v = %v, want look 1000 and no claim", ask, reply[1:])
			}
		}
	})
}

func TestAReadEndsAfter4MiB(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		list := numbered("a", 6)
		for _, id := range list {
			n.enqueue(strings.Repeat("x", 1<<20), []string{id})
		}
		if reply := n.call("read", "0-a001", "0-a002", "0-a003", "0-a004", "0-a005", "0-a006"); len(reply) != 1+4 {
			n.Errorf("read of 6 tasks of 1 MiB returned %d, want 4", len(reply)-1)
		}
		if reply := n.call("read", "0-a005", "0-gone", "0-a006"); len(reply) != 1+3 || len(reply[2].([]any)) != 0 || len(reply[3].([]any)[1].(string)) != 1<<20 {
			n.Errorf("read of the others returned %d, want 3 with an empty list for 0-gone", len(reply)-1)
		}
	})
}

// An agent waits for five children, of which each has a result of 200 KiB.
func TestRecallReturnsMembersIfThereAreAtMostThatManyAndEndsAfter512KiB(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		n.enqueue("", []string{"0-a"})
		n.fetch("w", 1, 1)
		args := []any{"0-a", "1", "w", "c1", 2, "entry", "1", "digest", "d", 5}
		for i := range 5 {
			args = append(args, fmt.Sprint("0-a.", i+1), "", "")
		}
		args = append(args, 0, 0, 1, 2, "kind", "p", "role", "promise")
		for i := range 5 {
			args = append(args, "1", fmt.Sprint("0-a.", i+1), "")
		}
		if reply := n.call("suspend", args...); reply[1] != "WAITING" {
			n.Fatalf("suspend = %v", reply)
		}
		for i := range 5 {
			n.call("resolve", "r", "complete", fmt.Sprint("0-a.", i+1), strings.Repeat("x", 200<<10))
		}
		for _, row := range []struct {
			claim         string
			most          any
			names         []any
			journal, tell int
		}{
			{"most is fewer than the members", 4, nil, 1, 0},
			{"most is the number of members", 5, nil, 1, 3},
			{"neither journal nor members", "", nil, 0, 0},
			{"children by name", "", []any{"4", "none", "5"}, 0, 3},
			{"children by name come before the members", 5, []any{"5"}, 1, 3},
		} {
			reply := n.call("recall", append([]any{"0-a", row.most}, row.names...)...)
			if _, told := values(reply[1])["1"]; told != (row.journal > 0) {
				n.Errorf("%s: the journal is %v", row.claim, reply[1])
			}
			if len(reply) != 2+row.tell {
				n.Errorf("%s: recall returned %d children, want %d", row.claim, len(reply)-2, row.tell)
			}
		}
		if reply := n.call("recall", "0-a", "", "none"); fmt.Sprint(reply[2:]) != "[[none]]" {
			n.Errorf("recall of an unknown child = %v, want its name alone", reply[2:])
		}
	})
}

func TestAGoodbyeGivesBack500ClaimsACall(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		for _, letter := range []string{"a", "b"} {
			n.enqueue("", numbered(letter, 300))
		}
		n.fetch("w", 1, 500)
		n.fetch("w", 2, 500)
		for _, left := range []int64{100, 0, 0} {
			if reply := n.call("heartbeat", "w", 0, 2); reply[1] != left || len(reply) != 2 {
				n.Errorf("heartbeat = %v, want %d left", reply[1:], left)
			}
		}
		if got, want := ids(n.fetch("v", 1, 500)), append(numbered("a", 300), numbered("b", 200)...); !slices.Equal(got, want) {
			n.Errorf("the line begins with %.200q, want the order before the fetches", got)
		}
	})
}

func TestAWorkerIsDescribedAsLongAsItsLease(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		worker := func() map[string]string {
			reply := n.call("read_workers")
			if len(reply) == 2 {
				return nil
			}
			row := reply[2].([]any)
			if len(reply) != 3 || row[0] != "w" || row[2] != int64(1) {
				n.Fatalf("read_workers = %v, want w with one task", reply)
			}
			return values(row[3:])
		}
		is := func(want map[string]string) {
			n.Helper()
			if got := worker(); !maps.Equal(got, want) {
				n.Errorf("the worker is %v, want %v", got, want)
			}
		}
		n.gives("MISSING", "describe_worker", "w", "running", "me")
		n.gives("MISSING", "stop_worker", "w")
		is(nil)

		n.enqueue("", []string{"0-a"})
		n.fetch("w", 1, 1)
		n.gives("OK ", "stop_worker", "w")
		stop := worker()["stop_at"]
		n.gives("OK", "describe_worker", "w", "running", "me")
		is(map[string]string{"seq": "1", "stop_at": stop, "state": "running", "about": "me", "program": "-"})
		n.rdb.HSet(n.Context(), testRoot+":worker:w", "stop_at", "7")
		n.gives("OK running", "stop_worker", "w")
		n.gives("OK", "describe_worker", "w", "draining", "")
		n.gives("OK", "describe_worker", "w", "running", "")
		is(map[string]string{"seq": "1", "stop_at": "7", "state": "draining", "about": "me", "program": "-"})
		n.gives("INVALID state must be running or draining", "describe_worker", "w", "idle", "me")
		n.gives("INVALID about has 4097 bytes, the limit is 4096", "describe_worker", "w", "running", strings.Repeat("x", 4097))

		n.enqueue("", []string{"0-b"})
		if reply := n.call("fetch", "w", 2, 1, 60000, 0, "q", 1); fmt.Sprint(reply[1]) != "[-1]" {
			n.Errorf("fetch of a worker that must stop = %v, want look -1 and no claim", reply[1])
		}
		if reply := n.call("heartbeat", "w", 60000, 2, "0-a", "1", ""); fmt.Sprint(reply[2:]) != "[[- 0 stop]]" {
			n.Errorf("heartbeat of a worker that must stop = %v, want - 0 stop", reply[2:])
		}
		n.call("heartbeat", "w", 0, 2)
		is(nil)
		if keys := n.rdb.Exists(n.Context(), testRoot+":worker:w").Val(); keys != 0 {
			n.Error("the description is there after the goodbye")
		}

		n.fetch("w", 3, 1)
		n.gives("OK", "describe_worker", "w", "running", "me")
		n.rdb.ZAdd(n.Context(), testRoot+":workers", redis.Z{Score: 1, Member: "w"}) // its lease has ended
		is(map[string]string{"seq": "3", "state": "running", "about": "me", "program": "-"})
		n.call("sweep", "r", 100, 500)
		is(nil)
		if keys := n.rdb.Exists(n.Context(), testRoot+":worker:w").Val(); keys != 0 {
			n.Error("the description is there after the sweep")
		}
	})
}

func TestAllWorkersAreReadInPages(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		want := map[string]bool{}
		for i := range 300 {
			want[fmt.Sprint("w", i)] = true
			n.call("heartbeat", fmt.Sprint("w", i), 60000, 0)
		}
		got, cursor := map[string]bool{}, "0"
		for page := 0; page == 0 || cursor != "0"; page++ {
			reply := n.call("read_workers", cursor)
			if page == 0 && n.library.functions && (len(reply) < 2+50 || len(reply) > 2+200) {
				n.Errorf("a page has %d workers, want about 100", len(reply)-2)
			}
			cursor = reply[1].(string)
			for _, row := range reply[2:] {
				got[row.([]any)[0].(string)] = true
			}
		}
		if !maps.Equal(got, want) {
			n.Errorf("read %d workers, want 300", len(got))
		}
	})
}

// The instant of a watched task is that of its deadline, or of the limit, warning, grace or start that
// comes first.
func TestAWatchReturnsTheNextInstantOfATask(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		n.enqueue("", []string{"0-never"})
		n.enqueue("", []string{"0-deadline"}, "timeout_ms", 60000)
		n.enqueue("", []string{"0-limit"}, "timeout_ms", 60000, "queue_timeout_ms", 50000)
		n.enqueue("", []string{"0-warning"}, "timeout_ms", 60000, "warn_percent", 50)
		n.enqueue("", []string{"0-timer"}, "timeout_ms", 60000, "role", "timer", "delay_ms", 20000)
		n.enqueue("", []string{"0-ruined"})
		n.rdb.Set(n.Context(), testRoot+":spec:0-ruined", "nonsense", 0)
		reply := n.call("watch", "0-never", "0-deadline", "0-limit", "0-warning", "0-timer", "0-ruined", "0-gone")
		now := reply[0].(int64)
		for i, want := range []struct {
			status string
			after  time.Duration // 0: no instant
		}{{"PENDING", 0}, {"PENDING", time.Minute}, {"PENDING", 50 * time.Second}, {"PENDING", 30 * time.Second}, {"PENDING", 20 * time.Second}, {"BROKEN", 0}, {"", 0}} {
			got := reply[1+i].([]any)
			instant, _ := strconv.ParseInt(got[1].(string), 10, 64)
			// The task was made before the watch, and not long before.
			fits := want.after == 0 && instant == 0 || instant <= now+want.after.Milliseconds() && instant > now+want.after.Milliseconds()-10_000
			if got[0] != want.status || !fits {
				n.Errorf("task %d is %q, want %s and %v after %d", i+1, got, want.status, want.after, now)
			}
		}
	})
}

func TestExplainReportsTheOwnerOfAnEndedOrMissingTask(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		n.enqueue("", []string{"0-a"})
		n.enqueue("", []string{"0-a.1"}, "role", "promise")
		n.gives("[CANCELLED]", "cancel", "c1", "", "0-a", "0-a.1")
		for _, id := range []string{"0-a.1", "0-a.2"} {
			if facts := values(n.call("explain", id, "", 1)[3]); facts["owner"] != "PENDING" {
				n.Errorf("facts of %s are %v, want owner PENDING", id, facts)
			}
		}
		if reply := n.call("explain", "0-a", "7", 1); fmt.Sprint(reply[1:]) != "[[] [] [] [] []]" {
			n.Errorf("explain with a cursor = %v, want empty lists", reply[1:])
		}
	})
}

// A stream that begins with 100 entries of another writer was not trimmed by Curfew, so no event is missing.
func TestReadEventsLooksForTheOldestAmong100Entries(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		pipe := n.rdb.Pipeline()
		add := func(fields ...any) {
			pipe.XAdd(n.Context(), &redis.XAddArgs{Stream: testRoot + ":events", Values: fields})
		}
		for _, row := range []struct {
			foreign int // entries of another writer at the beginning
			before  int64
		}{{0, 7}, {99, 7}, {100, 0}} {
			pipe.Del(n.Context(), testRoot+":events")
			for range row.foreign {
				add("x", "y")
			}
			add("first", 8, "at", 1, "events", "a\n")
			if _, err := pipe.Exec(n.Context()); err != nil {
				n.Fatal(err)
			}
			if reply := n.call("read_events", "0-0", 0); reply[2] != row.before {
				n.Errorf("behind %d other entries: %v events were written before the oldest, want %d", row.foreign, reply[2], row.before)
			}
		}
	})
}

func TestReadEventsReturnsWholeEntriesAndEndsAtTheNumberOrAMiB(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		add := func(fields ...any) {
			n.Helper()
			if err := n.rdb.XAdd(n.Context(), &redis.XAddArgs{Stream: testRoot + ":events", Values: fields}).Err(); err != nil {
				n.Fatal(err)
			}
		}
		add("first", 1, "at", 1, "events", "a\nb\nc\n")
		for range 5 { // entries of another writer count as one event each
			add("x", strings.Repeat("y", 300<<10))
		}
		last := "0-0"
		for _, row := range []struct {
			claim         string
			most          int
			entries, more int64
		}{
			{"no events, only the bounds", 0, 0, 1},
			{"one event, of an entry with three", 1, 1, 1},
			{"four events", 4, 2, 1},
			{"a MiB", 10000, 5, 1},
		} {
			reply := n.call("read_events", "0-0", row.most)
			if int64(len(reply)-6) != row.entries || reply[5] != row.more {
				n.Errorf("%s: read_events returned %d entries, more %v, want %d, more %d", row.claim, len(reply)-6, reply[5], row.entries, row.more)
			} else if row.entries > 0 {
				last = reply[len(reply)-1].([]any)[0].(string)
			}
		}
		if reply := n.call("read_events", last, 10000); len(reply) != 6+1 || reply[5] != int64(0) {
			n.Errorf("read_events behind %s returned %d entries, more %v, want the last, more 0", last, len(reply)-6, reply[5])
		}
	})
}

// An agent that lives long requests a signal thousands of times. Each promise stays as long as the agent.
func TestASignalCostsNoMoreAfterManyRequestsOfItsName(t *testing.T) {
	onNamespaces(t, func(n *namespace) {
		const requests, chunk = 1000, 250
		n.enqueue("", []string{"0-a"})
		n.gives("OK", "signal", "call1", "0-a", "go", "first")
		for from := 2; from <= requests; from += chunk {
			make, settle := []any{"1", 3, "kind", "signal", "queue", "q", "role", "promise"}, []any{fmt.Sprint("to", from), "complete"}
			for i := range chunk {
				id := fmt.Sprint("0-a.s-go__", from+i)
				make, settle = append(make, "1", id, ""), append(settle, id, "")
			}
			n.call("enqueue", make...)
			if from+chunk <= requests { // the last chunk is live
				n.call("resolve", settle...)
			}
		}
		live := requests - chunk + 2 // the first that is live
		send := func(call string) int {
			return n.commands(func() { n.gives("OK", "signal", call, "0-a", "go", "x") })
		}
		if commands := send("call2"); commands > 60 {
			n.Errorf("a signal after %d requests of its name runs %d commands", live-1, commands)
		}
		send("call3")
		send("call2") // a repeat
		for i, want := range []string{"call2", "call3", ""} {
			if got := values(n.call("read", fmt.Sprint("0-a.s-go__", live+i))[1].([]any)[2:]); got["call"] != want {
				n.Errorf("request %d is settled by %q, want %q", live+i, got["call"], want)
			}
		}
	})
}

// commands returns how many commands Redis runs during a function; 0 on miniredis, which does not count them.
func (n *namespace) commands(during func()) int {
	n.rdb.ConfigResetStat(n.Context())
	during()
	sum := 0
	for line := range strings.Lines(n.rdb.Info(n.Context(), "commandstats").Val()) {
		_, calls, _ := strings.Cut(line, ":calls=")
		calls, _, _ = strings.Cut(calls, ",")
		count, _ := strconv.Atoi(calls)
		sum += count
	}
	return sum
}
