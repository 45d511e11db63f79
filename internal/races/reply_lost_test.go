package races

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/faultproxy"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/testclock"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// lossy is a namespace whose time stands still, with a proxy between it and the calls
// that lose their answers. Time, ids and all else being equal, what is stored after a
// call that was repeated must be what is stored after one that was not.
type lossy struct {
	*stage
	library *lua.Library
	proxy   *faultproxy.Proxy
	caller  *queue.Queue // through the proxy; s.q goes around it
	named   []string     // ids, in the order that the test came by them
	second  string       // another namespace, if the test opened one
}

func newLossy(t *testing.T) *lossy {
	t.Helper()
	addr := redistest.Shared(t).Addr
	library := testclock.Library(t, client(t, addr))
	l := &lossy{library: library, proxy: faultproxy.Start(t, addr)}
	l.stage = newStage(t, addr, queue.Config{Library: library, Events: "all"})
	var err error
	l.caller, err = queue.Open(l.ctx, client(t, l.proxy.Addr), queue.Config{Namespace: l.q.Namespace(), Library: library, Logger: l.q.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// at moves the clock.
func (l *lossy) at(d time.Duration) {
	testclock.Set(l.T, l.rdb, l.q.Root(0), testclock.Start.Add(d))
}

// tasks enqueues around the proxy and names what it enqueued.
func (l *lossy) tasks(tasks ...queue.Task) []string {
	ids := l.enqueue(tasks...)
	l.named = append(l.named, ids...)
	return ids
}

// running enqueues tasks around the proxy and has worker w claim them all.
func (l *lossy) running(tasks ...queue.Task) []string {
	ids := l.tasks(tasks...)
	if claims := l.fetch("w", 1, len(ids), time.Minute); len(claims) != len(ids) {
		l.Fatalf("%d of %d were claimed", len(claims), len(ids))
	}
	return ids
}

// settle reports through the proxy.
func (l *lossy) settle(next queue.Ask, outcomes ...queue.Outcome) any {
	for i := range outcomes {
		if outcomes[i].Epoch == 0 {
			outcomes[i].Epoch = 1
		}
	}
	return answer(l.caller.Settle(l.ctx, 0, "w", "call", outcomes, next))
}

// answer is what a caller is told.
func answer(value any, err error) any {
	if err != nil {
		return err
	}
	if trip, ok := value.(queue.Trip); ok {
		// Which come first among the claims of one trip is nobody's concern, and More
		// is a hint: the line's token is there for whoever goes by it.
		trip.More = false
		slices.SortFunc(trip.Claims, func(a, b queue.Claim) int { return strings.Compare(a.ID, b.ID) })
		return trip
	}
	return value
}

var (
	randomCall = regexp.MustCompile(`call = [0-9A-Z]{12}`)
	streamID   = regexp.MustCompile(`(?m)^  \d{13}-\d+ `)
)

// plain puts the same names into texts of different runs.
func (l *lossy) plain(text string) string {
	for i, id := range l.named {
		text = strings.ReplaceAll(text, id, fmt.Sprintf("0-task%d", i))
	}
	if l.second != "" {
		text = strings.ReplaceAll(text, l.second, "second")
	}
	text = strings.ReplaceAll(text, l.q.Namespace(), "first")
	text = randomCall.ReplaceAllString(text, "call = C")
	return streamID.ReplaceAllString(text, "  entry ")
}

// state is all that is stored.
func (l *lossy) state() string {
	text := redistest.Dump(l.T, l.rdb, l.q.Namespace()+":")
	if l.second != "" {
		text += redistest.Dump(l.T, l.rdb, l.second+":")
	}
	return l.plain(text)
}

// loss is a call whose answer is lost. call returns what the caller is told.
type loss struct {
	holds, script string
	call          func(l *lossy) any
}

var losses = []loss{
	{"a task is enqueued once", "enqueue", func(l *lossy) any {
		r, err := l.caller.Enqueue(l.ctx, queue.Task{Kind: "a", Payload: []byte("p"), Timeout: time.Minute, Headers: map[string]string{"h": "v"}})
		l.named = append(l.named, r.ID)
		return answer(r, err)
	}},
	{"a list is enqueued once", "enqueue", func(l *lossy) any {
		owner := l.running(queue.Task{Kind: "owner", Timeout: time.Hour})[0]
		receipts, err := l.caller.EnqueueAll(l.ctx, []queue.Task{
			{Kind: "a", Timeout: time.Minute, QueueTimeout: time.Second}, {Kind: "b", Delay: time.Second, Priority: 3},
			{Kind: "c", ID: owner + ".1"}, {Kind: "d", ID: owner + ".2", Timeout: time.Minute},
			{Kind: "e", IdempotencyKey: "key"}, {Kind: "e", IdempotencyKey: "key"}, {Kind: "f", IdempotencyKey: "key"},
			{Kind: "g", Deadline: testclock.Start.Add(-time.Second)}, {Kind: "h", ID: owner + "x.1"},
		})
		for _, r := range receipts {
			l.named = append(l.named, r.ID)
		}
		l.named = slices.DeleteFunc(l.named, func(id string) bool { return id == "" })
		return answer(receipts, err)
	}},
	{"a known idempotency key finds its task", "enqueue", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a", IdempotencyKey: "key"})
		return answer(l.caller.Enqueue(l.ctx, queue.Task{Kind: "a", IdempotencyKey: "key"}))
	}},

	{"a fetch claims once", "fetch", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a", Payload: []byte("p"), AttemptTimeout: time.Second}, queue.Task{Kind: "b", Priority: 2}, queue.Task{Kind: "c"}, queue.Task{Kind: "d"})
		return answer(l.caller.Fetch(l.ctx, 0, "w", ask(1, 3, time.Minute)))
	}},
	{"a fetch ends what is late once", "fetch", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a", Timeout: time.Second}, queue.Task{Kind: "b"})
		l.at(2 * time.Second)
		return answer(l.caller.Fetch(l.ctx, 0, "w", ask(1, 1, time.Minute)))
	}},
	{"a fetch that passes the baton leaves one token", "fetch", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a"}, queue.Task{Kind: "b"})
		return answer(l.caller.Fetch(l.ctx, 0, "w", ask(1, 0, time.Minute)))
	}},

	{"complete", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", Timeout: time.Minute})[0]
		return l.settle(queue.Ask{}, queue.Outcome{ID: id, Verb: queue.Complete, Result: []byte("r")})
	}},
	{"fail spends one retry", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", MaxRetries: 5})[0]
		return l.settle(queue.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Error: "e", Code: 3})
	}},
	{"fail and wait spends one retry", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", MaxRetries: 5})[0]
		return l.settle(queue.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Error: "e", Delay: time.Second})
	}},
	{"fail of the last attempt", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		return l.settle(queue.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Error: "e"})
	}},
	{"fail for good", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", MaxRetries: 5})[0]
		return l.settle(queue.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Class: queue.ClassFailed, Error: "e"})
	}},
	{"fail by the worker's time limit", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", MaxRetries: 5})[0]
		return l.settle(queue.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Class: queue.ClassTimeout})
	}},
	{"release", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		return l.settle(queue.Ask{}, queue.Outcome{ID: id, Verb: queue.Release})
	}},
	{"release and wait", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		return l.settle(queue.Ask{}, queue.Outcome{ID: id, Verb: queue.Release, Delay: time.Second})
	}},
	{"an owner is completed and its children are doomed once", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		l.tasks(queue.Task{Kind: "b", ID: id + ".1"}, queue.Task{Kind: "c", ID: id + ".2"})
		return l.settle(queue.Ask{}, queue.Outcome{ID: id, Verb: queue.Complete})
	}},
	{"all verbs in one list", "settle", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b", MaxRetries: 1}, queue.Task{Kind: "c"})
		return l.settle(queue.Ask{}, queue.Outcome{ID: ids[0], Verb: queue.Complete}, queue.Outcome{ID: ids[1], Verb: queue.Fail}, queue.Outcome{ID: ids[2], Verb: queue.Release})
	}},
	{"settle takes the next tasks once", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		l.tasks(queue.Task{Kind: "b"}, queue.Task{Kind: "c"}, queue.Task{Kind: "d"})
		return l.settle(ask(2, 2, time.Minute), queue.Outcome{ID: id, Verb: queue.Complete})
	}},
	{"settle gives a task back and takes it again", "settle", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b", MaxRetries: 3})
		return l.settle(ask(2, 2, time.Minute), queue.Outcome{ID: ids[0], Verb: queue.Release}, queue.Outcome{ID: ids[1], Verb: queue.Fail, Error: "e"})
	}},

	{"a heartbeat gives back what was not received once", "heartbeat", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b"}, queue.Task{Kind: "c", Timeout: time.Second})
		l.at(2 * time.Second)
		return answer(l.caller.Heartbeat(l.ctx, 0, "w", time.Minute, 1, []queue.Held{{ID: ids[0], Epoch: 1}, {ID: ids[2], Epoch: 1}, {ID: "0-nobody", Epoch: 1}}))
	}},
	{"goodbye gives back once", "heartbeat", func(l *lossy) any {
		l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b"}, queue.Task{Kind: "c", Timeout: time.Second})
		l.at(2 * time.Second)
		return answer(l.caller.Heartbeat(l.ctx, 0, "w", 0, 1, nil))
	}},

	{"cancel", "cancel", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b"}, queue.Task{Kind: "c", Timeout: time.Second})
		l.settle(queue.Ask{}, queue.Outcome{ID: ids[1], Verb: queue.Complete, Result: []byte("r")})
		ids = append(ids, l.tasks(queue.Task{Kind: "d"}, queue.Task{Kind: "e", Delay: time.Hour}, queue.Task{Kind: "f", ID: ids[0] + ".1"})...)
		l.at(2 * time.Second)
		return answer(l.caller.CancelAll(l.ctx, append(ids, "0-NOBODY"), "enough"))
	}},

	{"a sweep of all clocks", "sweep", func(l *lossy) any {
		owner := l.running(queue.Task{Kind: "owner", Timeout: time.Second}, queue.Task{Kind: "attempt", AttemptTimeout: time.Second}, queue.Task{Kind: "held"})[0]
		l.tasks(queue.Task{Kind: "child", ID: owner + ".1"}, queue.Task{Kind: "delayed", Delay: time.Second}, queue.Task{Kind: "queued", QueueTimeout: time.Second}, queue.Task{Kind: "keyed", IdempotencyKey: "key", Timeout: time.Second, Retention: time.Hour})
		l.at(2 * time.Minute)
		// What it did is told to whom it was told: a repeat has nothing left to do.
		for range 4 {
			if _, err := l.caller.Sweep(l.ctx, 0, "r", 100, 500*time.Millisecond); err != nil {
				return err
			}
		}
		l.at(2 * 24 * time.Hour)
		_, err := l.caller.Sweep(l.ctx, 0, "r", 100, 500*time.Millisecond)
		return answer(nil, err)
	}},

	{"who watches a late task ends it once", "watch", func(l *lossy) any {
		id := l.tasks(queue.Task{Kind: "a", Timeout: time.Second})[0]
		l.at(2 * time.Second)
		return answer(l.caller.Result(l.ctx, id))
	}},
	{"who watches a live task gets its result", "watch", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		result := make(chan any)
		go func() { result <- answer(l.caller.Result(l.ctx, id)) }()
		eventually(l.T, "it is watched", func() bool { return l.record(id).Fields["watched"] != "" })
		if _, err := l.q.Settle(l.ctx, 0, "w", "call", []queue.Outcome{{ID: id, Epoch: 1, Verb: queue.Complete, Result: []byte("r")}}, queue.Ask{}); err != nil {
			return err
		}
		return receive(l.T, result, "the result comes")
	}},

	{"a namespace is made once", "open", func(l *lossy) any {
		l.second = redistest.Namespace(l.T)
		q, err := queue.Open(l.ctx, l.caller.Client(), queue.Config{Namespace: l.second, Partitions: 3, Library: l.library, Logger: l.q.Logger()})
		if err != nil {
			return err
		}
		return q.Partitions()
	}},
}

func TestReplyLost(t *testing.T) {
	t.Parallel()
	for _, c := range losses {
		t.Run(c.holds, func(t *testing.T) {
			t.Parallel()
			// run returns the answer and the state after a call of which so many
			// answers were lost.
			run := func(times int) (told, state string) {
				l := newLossy(t)
				cut := l.proxy.CutReply(faultproxy.Script(l.library.SHA(c.script)), times)
				value := c.call(l)
				for range times {
					cut.Await(t)
				}
				told, state = l.plain(fmt.Sprintf("%+v", value)), l.state()
				l.rdb.Del(l.ctx, l.key("clock")) // an audit would ask what it is
				l.audit()
				return told, state
			}
			told, state := run(0)
			for _, times := range []int{1, 2, rounds(1) + 2} {
				toldThen, stateThen := run(times)
				if toldThen != told {
					t.Errorf("with %d answers lost the caller is told\n%s\nwithout\n%s", times, toldThen, told)
				}
				if diff := redistest.Diff(state, stateThen); diff != "" {
					t.Errorf("with %d answers lost the state is another:\n%s", times, diff)
				}
			}
		})
	}
}

// A request that was given up may still arrive: its repeat was quicker, and the world
// has moved on.
func TestARequestThatComesLateChangesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range losses {
		t.Run(c.holds, func(t *testing.T) {
			t.Parallel()
			l := newLossy(t)
			var request []any
			match := faultproxy.Script(l.library.SHA(c.script))
			l.proxy.CutReply(func(args [][]byte) bool {
				if match(args) {
					request = nil
					for _, arg := range args {
						request = append(request, string(arg))
					}
				}
				return false
			}, 1)
			c.call(l)
			l.moveOn(!strings.HasPrefix(c.holds, "goodbye"))
			before := l.state()
			if err := l.rdb.Do(l.ctx, request...).Err(); err != nil {
				t.Fatal(err)
			}
			after := rejections.ReplaceAllString(l.state(), "") // that it was refused may be told
			if diff := redistest.Diff(rejections.ReplaceAllString(before, ""), after); diff != "" {
				t.Errorf("%.40q that comes late has changed\n%s", request, diff)
			}
		})
	}
}

var rejections = regexp.MustCompile(`(?m)^  entry .*kind = rejected.*\n`)

// moveOn has others take what is ready, and complete half of it; and worker w, whose
// calls these are, take new work, if it is still there.
func (l *lossy) moveOn(there bool) {
	l.Helper()
	claims := l.fetch("other", 1, 100, time.Minute)
	var outcomes []queue.Outcome
	for i := 0; i < len(claims); i += 2 {
		outcomes = append(outcomes, queue.Outcome{ID: claims[i].ID, Epoch: claims[i].Epoch, Verb: queue.Complete})
	}
	trip, err := l.q.Settle(l.ctx, 0, "other", "another call", outcomes, ask(2, 1, time.Minute))
	if err != nil {
		l.Fatal(err)
	}
	for _, v := range trip.Verdicts {
		if !v.Accepted() {
			l.Error(v)
		}
	}
	l.tasks(queue.Task{Kind: "new"}, queue.Task{Kind: "newer"})
	if there {
		l.fetch("w", 9, 1, time.Minute)
	}
}

func TestEveryScriptThatWritesLosesItsReply(t *testing.T) {
	library, err := lua.Load(lua.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range library.Names() {
		tested := slices.ContainsFunc(losses, func(c loss) bool { return c.script == name })
		if reads := strings.HasPrefix(name, "read"); tested == reads {
			t.Errorf("lua/%s.lua: a call that loses its reply is tested: %v; it only reads: %v", name, tested, reads)
		}
	}
}
