package inspect_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/internal/vocabulary"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// listed is a namespace of two partitions with tasks of every status in every index. names are the ids by name.
type listed struct {
	*queue.Queue
	t     *testing.T
	rdb   redis.UniversalClient
	names map[string]string
	now   time.Duration
	seq   int64
}

func newListed(t *testing.T, rdb redis.UniversalClient, partitions int) *listed {
	t.Helper()
	l := &listed{t: t, rdb: rdb, names: map[string]string{},
		Queue: queuetest.Open(t, rdb, queue.Config{Partitions: partitions, Library: testclock.Library(t, rdb), Namespace: redistest.Namespace(t)})}
	l.advance(0)
	return l
}

// advance moves the clock of all partitions.
func (l *listed) advance(d time.Duration) {
	l.t.Helper()
	l.now += d
	for p := range l.Partitions() {
		testclock.Set(l.t, l.rdb, l.Root(p), testclock.Start.Add(l.now))
	}
}

// add enqueues a task a ms after the one before.
func (l *listed) add(name string, task queue.Task) string {
	l.t.Helper()
	l.advance(time.Millisecond)
	l.names[name] = queuetest.Enqueue(l.t, l.Queue, task).ID
	return l.names[name]
}

// take claims the only task of a queue.
func (l *listed) take(id, line string) queue.Claim {
	l.t.Helper()
	l.seq++
	reply, err := claim.Of(l.Queue).Fetch(l.t.Context(), queuetest.Partition(l.t, id), "w", claim.Ask{N: 1, Seq: l.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: line, N: 1}}})
	if err != nil || len(reply.Claims) != 1 || reply.Claims[0].ID != id {
		l.t.Fatalf("fetch of %s = %+v, %v", id, reply, err)
	}
	return reply.Claims[0]
}

func (l *listed) settle(id string, o queue.Outcome) {
	l.t.Helper()
	o.ID, o.Epoch = id, 1
	if _, err := claim.Of(l.Queue).Settle(l.t.Context(), queuetest.Partition(l.t, id), "w", queue.NewCall(), []queue.Outcome{o}, claim.Ask{}); err != nil {
		l.t.Fatal(err)
	}
}

// wait has an agent wait for its child.
func (l *listed) wait(agent, child string, limit time.Duration) {
	l.t.Helper()
	_, err := claim.Of(l.Queue).Suspend(l.t.Context(), claim.Suspension{Agent: agent, Epoch: 1, Worker: "w",
		Wait: claim.Wait{Entry: 1, Digest: "d", Mode: queue.WaitAll, Limit: limit, Members: []claim.Member{{ID: child}}}})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *listed) fill() {
	l.t.Helper()
	l.add("ready", queue.Task{Kind: "mail"})
	l.add("ready with a deadline", queue.Task{Kind: "mail", Timeout: time.Hour, QueueTimeout: time.Minute})
	l.add("ready in b", queue.Task{Kind: "render", Queue: "b", Priority: 2})
	l.add("delayed", queue.Task{Kind: "mail", Delay: time.Hour, Timeout: 2 * time.Hour})
	l.add("timer", queue.Task{Kind: "timer", Timer: true, Delay: time.Hour})
	l.add("promise", queue.Task{Kind: "approval", Promise: true, Timeout: time.Hour})
	l.add("promise with a warning", queue.Task{Kind: "approval", Promise: true, Timeout: time.Hour, WarnAt: 0.5})
	l.add("promise of no index", queue.Task{Kind: "approval", Promise: true})
	run := func(name, line string, task queue.Task) string {
		task.Queue = line
		id := l.add(name, task)
		l.take(id, line)
		return id
	}
	run("running", "r1", queue.Task{Kind: "mail", Timeout: time.Hour})
	for name, limit := range map[string]time.Duration{"agent with a limit": time.Minute, "agent with a deadline": 0, "agent of no index": 0} {
		task := queue.Task{Kind: "agent"}
		if name == "agent with a deadline" {
			task.Timeout = time.Hour
		}
		agent := run(name, strings.ReplaceAll(name, " ", "-"), task)
		l.wait(agent, l.add("child of "+name, queue.Task{ID: agent + ".c", Kind: "approval", Promise: true, Timeout: time.Minute}), limit)
	}
	l.settle(run("completed", "e1", queue.Task{Kind: "mail"}), queue.Outcome{Verb: queue.Complete, Result: []byte("done")})
	l.settle(run("failed", "e2", queue.Task{Kind: "mail"}), queue.Outcome{Verb: queue.Fail, Error: "smtp: 421 " + strings.Repeat("x", 300) + " greylisted"})
	l.settle(run("retried", "e3", queue.Task{Kind: "mail", MaxRetries: 1}), queue.Outcome{Verb: queue.Fail, Error: "smtp: 450", Delay: time.Hour})
	if _, err := l.Cancel(l.t.Context(), l.add("cancelled", queue.Task{Kind: "render", Queue: "e4"}), "no need"); err != nil {
		l.t.Fatal(err)
	}
	owner := run("owner", "o", queue.Task{Kind: "agent"})
	for i := range 3 {
		id := l.add(fmt.Sprint("child ", i), queue.Task{ID: fmt.Sprint(owner, ".", i), Kind: "render", Queue: "c"})
		if i == 0 {
			l.take(id, "c")
			l.settle(id, queue.Outcome{Verb: queue.Complete})
		}
	}
	late := l.add("timed out", queue.Task{Kind: "render", Queue: "late", Timeout: time.Millisecond})
	l.advance(2 * time.Millisecond)
	if _, err := l.Cancel(l.t.Context(), late, ""); err != nil { // its time is up, and this call ends it
		l.t.Fatal(err)
	}
}

// pages returns the names of all tasks that pages of a size list, in order, and the pages.
func (l *listed) pages(f inspect.Filter, n int) (found []string, pages []inspect.ListPage) {
	l.t.Helper()
	byID := map[string]string{}
	for name, id := range l.names {
		byID[id] = name
	}
	for page := ""; ; {
		got, err := inspect.List(l.t.Context(), l.Queue, f, page, n)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, line := range got.Lines {
			found = append(found, cmp.Or(byID[line.ID], line.ID))
		}
		if len(got.Lines) > n {
			l.t.Errorf("a page has %d lines, want at most %d", len(got.Lines), n)
		}
		if pages = append(pages, got); len(pages) > 10_000 {
			l.t.Fatal("the list does not end")
		}
		if page = got.Next; page == "" {
			return found, pages
		}
	}
}

func TestAListHasEachTaskThatMatchesOnce(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		l := newListed(t, rdb, 2)
		l.fill()
		unlisted := []string{"promise of no index", "agent of no index", "child 0"}
		for claim, row := range map[string]struct {
			filter inspect.Filter
			want   func(r *queue.Record) bool
		}{
			"all":             {inspect.Filter{}, func(*queue.Record) bool { return true }},
			"a kind":          {inspect.Filter{Kind: "mail"}, func(r *queue.Record) bool { return r.Kind == "mail" }},
			"a queue":         {inspect.Filter{Queue: "b"}, func(r *queue.Record) bool { return r.Queue == "b" }},
			"a default queue": {inspect.Filter{Queue: "default"}, func(r *queue.Record) bool { return r.Queue == "default" }},
			"pending":         {inspect.Filter{Statuses: []queue.Status{"PENDING"}}, func(r *queue.Record) bool { return r.Status == "PENDING" }},
			"running":         {inspect.Filter{Statuses: []queue.Status{"RUNNING"}}, func(r *queue.Record) bool { return r.Status == "RUNNING" }},
			"waiting":         {inspect.Filter{Statuses: []queue.Status{"WAITING"}}, func(r *queue.Record) bool { return r.Status == "WAITING" }},
			"ended":           {inspect.Filter{Statuses: []queue.Status{"COMPLETED", "FAILED", "CANCELLED"}}, func(r *queue.Record) bool { return r.Status.Ended() }},
			"completed":       {inspect.Filter{Statuses: []queue.Status{"COMPLETED"}}, func(r *queue.Record) bool { return r.Status == "COMPLETED" }},
			"timed out":       {inspect.Filter{TimedOut: true}, func(r *queue.Record) bool { return r.TimedOut }},
			"unbounded": {inspect.Filter{Unbounded: true}, func(r *queue.Record) bool {
				return !r.Status.Ended() && r.Until.IsZero() && r.Role != queue.RoleTimer
			}},
			"unbounded and pending": {inspect.Filter{Unbounded: true, Statuses: []queue.Status{"PENDING"}}, func(r *queue.Record) bool {
				return r.Status == "PENDING" && r.Until.IsZero() && r.Role != queue.RoleTimer
			}},
			"unbounded and ended":     {inspect.Filter{Unbounded: true, Statuses: []queue.Status{"FAILED"}}, func(r *queue.Record) bool { return false }},
			"an error":                {inspect.Filter{ErrorText: "smtp"}, func(r *queue.Record) bool { return strings.Contains(r.Error+r.LastError, "smtp") }},
			"the end of a long error": {inspect.Filter{ErrorText: "greylisted"}, func(r *queue.Record) bool { return strings.Contains(r.Error, "greylisted") }},
			"an error like a pattern": {inspect.Filter{ErrorText: "%a+"}, func(r *queue.Record) bool { return false }},
			"before": {inspect.Filter{Before: testclock.Start.Add(12 * time.Millisecond)}, func(r *queue.Record) bool {
				return r.CreatedAt.Before(testclock.Start.Add(12*time.Millisecond)) && r.CompletedAt.Before(testclock.Start.Add(12*time.Millisecond))
			}},
			"before all":     {inspect.Filter{Before: time.UnixMilli(1)}, func(r *queue.Record) bool { return false }},
			"before anybody": {inspect.Filter{Before: time.UnixMilli(-1)}, func(r *queue.Record) bool { return false }},
			"since": {inspect.Filter{Since: testclock.Start.Add(12 * time.Millisecond)}, func(r *queue.Record) bool {
				return !r.CreatedAt.Before(testclock.Start.Add(12*time.Millisecond)) || !r.CompletedAt.Before(testclock.Start.Add(12*time.Millisecond))
			}},
			"two at once": {inspect.Filter{Kind: "render", Statuses: []queue.Status{"FAILED"}}, func(r *queue.Record) bool { return r.Kind == "render" && r.Status == "FAILED" }},
			"nothing":     {inspect.Filter{Kind: "unknown"}, func(*queue.Record) bool { return false }},
		} {
			var want []string
			for _, name := range slices.Sorted(maps.Keys(l.names)) {
				r, err := l.Get(t.Context(), l.names[name])
				if err != nil {
					t.Fatal(err)
				}
				if row.want(r) && !slices.Contains(unlisted, name) {
					want = append(want, name)
				}
			}
			whole, _ := l.pages(row.filter, 1000)
			if got := slices.Sorted(slices.Values(whole)); !slices.Equal(got, want) {
				t.Errorf("%s: the list has\n%q, want\n%q", claim, got, want)
			}
			for _, n := range []int{1, 3} {
				for _, looks := range []int{0, 1, 5} {
					row.filter.Looks = looks
					if got, _ := l.pages(row.filter, n); !slices.Equal(got, whole) {
						t.Errorf("%s: pages of %d that look at %d have\n%q, want\n%q", claim, n, looks, got, whole)
					}
				}
			}
		}
	})
}

func TestAListSaysWhatItCannotFind(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	l := newListed(t, redistest.Shared(t).Client(t), 1)
	l.fill()
	for _, row := range []struct {
		filter inspect.Filter
		want   int
	}{
		{inspect.Filter{}, 3}, {inspect.Filter{Statuses: []queue.Status{"RUNNING"}}, 0}, {inspect.Filter{Statuses: []queue.Status{"WAITING"}}, 1},
		{inspect.Filter{TimedOut: true}, 1}, {inspect.Filter{Unbounded: true}, 2}, {inspect.Filter{Owner: l.names["owner"]}, 0},
	} {
		if _, pages := l.pages(row.filter, 10); len(pages[0].Unlisted) != row.want {
			t.Errorf("a list of %+v cannot find %q, want %d sentences", row.filter, pages[0].Unlisted, row.want)
		}
	}
}

func TestAListOfAnOwnerHasItsChildren(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		l := newListed(t, rdb, 2)
		l.fill()
		owner := l.names["owner"]
		for _, row := range []struct {
			claim  string
			filter inspect.Filter
			want   []string
		}{
			{"all children, the newest first", inspect.Filter{Owner: owner}, []string{"child 2", "child 1", "child 0"}},
			{"one status", inspect.Filter{Owner: owner, Statuses: []queue.Status{"COMPLETED"}}, []string{"child 0"}},
			{"a task without children", inspect.Filter{Owner: l.names["ready"]}, nil},
			{"an unknown task", inspect.Filter{Owner: "0-unknown"}, nil},
		} {
			for _, n := range []int{1, 2, 10} {
				if got, _ := l.pages(row.filter, n); !slices.Equal(got, row.want) {
					t.Errorf("%s, in pages of %d: %q, want %q", row.claim, n, got, row.want)
				}
			}
		}
		l.settle(owner, queue.Outcome{Verb: queue.Complete})
		for range 3 {
			l.advance(time.Second)
			for p := range l.Partitions() {
				if _, err := reaper.Sweep(t.Context(), l.Queue, p, "r", 100, time.Second); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, pages := l.pages(inspect.Filter{Owner: owner}, 1)
		if want := []string{"child 0", "child 1", "child 2"}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("after the end of the owner: %q, want %q", got, want)
		}
		if looked := pages[0].Looked; looked == 0 {
			t.Error("the first page looked at no task")
		}
	})
}

// The tasks of a partition are merged by what orders the index.
func TestTheNewestTasksOfAllPartitionsComeFirst(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		l := newListed(t, rdb, 3)
		var want []string
		for i := range 60 {
			name := fmt.Sprint("task", i)
			id := l.add(name, queue.Task{})
			if i%10 > 2 { // some end together
				l.advance(time.Second)
			}
			if _, err := l.Cancel(t.Context(), id, ""); err != nil {
				t.Fatal(err)
			}
			want = append(want, name)
		}
		for _, n := range []int{1, 7, 60} {
			got, pages := l.pages(inspect.Filter{Statuses: []queue.Status{"CANCELLED"}, Looks: 15}, n)
			ends := []time.Time{}
			for _, page := range pages {
				for _, line := range page.Lines {
					ends = append(ends, line.CompletedAt)
				}
				if page.Looked > 15 {
					t.Errorf("a page looked at %d tasks, want at most 15", page.Looked)
				}
			}
			if !slices.IsSortedFunc(ends, func(a, b time.Time) int { return b.Compare(a) }) {
				t.Errorf("pages of %d are not sorted by the end: %v", n, ends)
			}
			if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.Errorf("pages of %d have %d tasks, want %d: %q", n, len(got), len(want), got)
			}
		}
	})
}

// All tasks have one score, so that only their ids say where a page ends.
func TestTasksThatComeAndGoDoNotMoveOthers(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		l := newListed(t, rdb, 2)
		ctx := context.Background()
		end := func(n int) (ids []string) {
			for range n {
				ids = append(ids, queuetest.Enqueue(t, l.Queue, queue.Task{}).ID)
			}
			if _, err := l.CancelAll(ctx, ids, ""); err != nil {
				t.Fatal(err)
			}
			return ids
		}
		there := end(150)
		if got, _ := l.pages(inspect.Filter{}, 7); len(got) != len(there) {
			t.Fatalf("the list has %d tasks, want %d", len(got), len(there))
		}
		seen := map[string]int{}
		for page, pages := "", 0; pages == 0 || page != ""; pages++ {
			got, err := inspect.List(ctx, l.Queue, inspect.Filter{Statuses: []queue.Status{"CANCELLED"}}, page, 7)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range got.Lines {
				seen[line.ID]++
				if i%2 == 0 || i == len(got.Lines)-1 { // half of the page goes, and its last task
					for p := range 2 {
						rdb.ZRem(ctx, l.Root(p)+":dead:default", line.ID)
					}
				}
			}
			end(3)
			page = got.Next
		}
		for _, id := range there {
			if seen[id] != 1 {
				t.Errorf("%s is listed %d times, want once", id, seen[id])
			}
		}
	})
}

func TestAListAddsPayloadsAndResultsIfAsked(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	l := newListed(t, redistest.Shared(t).Client(t), 1)
	id := l.add("a", queue.Task{Payload: []byte(strings.Repeat("p", 1000))})
	l.take(id, "default")
	l.settle(id, queue.Outcome{Verb: queue.Complete, Result: []byte(strings.Repeat("r", 1000))})
	for _, bodies := range []bool{false, true} {
		page, err := inspect.List(t.Context(), l.Queue, inspect.Filter{Bodies: bodies}, "", 10)
		if err != nil || len(page.Lines) != 1 {
			t.Fatalf("List = %+v, %v, want one task", page, err)
		}
		if line := page.Lines[0]; len(line.Payload) > 0 != bodies || len(line.Result) > 0 != bodies || line.Index != "retained" {
			t.Errorf("with Bodies %v the line has %d bytes of payload, %d of result, and is in %s", bodies, len(line.Payload), len(line.Result), line.Index)
		}
	}
}

func TestAListCountsRecordsThatCannotBeRead(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	l := newListed(t, redistest.Shared(t).Client(t), 1)
	id := l.add("a", queue.Task{})
	l.add("b", queue.Task{})
	if err := l.rdb.Set(t.Context(), l.Root(0)+":spec:"+id, "rubbish", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, pages := l.pages(inspect.Filter{}, 10); !slices.Equal(got, []string{"b"}) || pages[0].Broken != 1 {
		t.Errorf("the list has %q and %d broken records, want b and one", got, pages[0].Broken)
	}
}

func TestAListRefusesBadArguments(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	l := newListed(t, redistest.Shared(t).Client(t), 1)
	for i := range 3 {
		l.add(fmt.Sprint(i), queue.Task{})
	}
	first, err := inspect.List(t.Context(), l.Queue, inspect.Filter{}, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		claim  string
		filter inspect.Filter
		page   string
		n      int
		want   string
	}{
		{"no lines", inspect.Filter{}, "", 0, "list: n 0 must be 1 to 1000"},
		{"too many lines", inspect.Filter{}, "", 1001, "list: n 1001 must be 1 to 1000"},
		{"a page that is none", inspect.Filter{}, "nonsense", 1, `list: page "nonsense" is not valid: it must be "" for the first, or the Next of the page before`},
		{"a page of another filter", inspect.Filter{Kind: "k"}, first.Next, 1, `list: page is of a list with another filter: begin with ""`},
		{"an unknown status", inspect.Filter{Statuses: []queue.Status{"DONE"}}, "", 1, `list: status "DONE" must be PENDING, RUNNING, WAITING, COMPLETED, FAILED or CANCELLED`},
		{"a kind that is none", inspect.Filter{Kind: "a b"}, "", 1, `list: kind "a b" is not the name of a kind`},
		{"a queue that is none", inspect.Filter{Queue: "a:b"}, "", 1, `list: queue "a:b" is not the name of a queue`},
		{"an owner of another namespace", inspect.Filter{Owner: "7-a"}, "", 1, `list: id "7-a" is in partition 7, but this namespace has 1 partitions`},
		{"negative looks", inspect.Filter{Looks: -1}, "", 1, "list: looks -1 must be at least 1, or 0 for 10000"},
	} {
		_, err := inspect.List(t.Context(), l.Queue, row.filter, row.page, row.n)
		if !errors.Is(err, refusal.ErrInvalid) || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.claim, err, row.want)
		}
	}
}

// The JSON of a page has names and types of the vocabulary.
func TestTheJSONOfAListUsesTheVocabulary(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	l := newListed(t, redistest.Shared(t).Client(t), 1)
	l.fill()
	_, pages := l.pages(inspect.Filter{Bodies: true}, 100)
	text := jsonx.Encode(pages[0])
	var page map[string]any
	if err := json.Unmarshal(text, &page); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if err := vocabulary.CheckJSON(page); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	tasks, _ := page["tasks"].([]any)
	first, _ := tasks[0].(map[string]any)
	if len(tasks) != len(pages[0].Lines) || first["id"] == nil || first["status"] == nil || first["index"] == nil {
		t.Errorf("the page has %d tasks, the first is %v", len(tasks), first)
	}
}
