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
	"github.com/curfew-dev/curfew/internal/stages"
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
	library := testclock.Library(t, stages.Client(t, addr))
	l := &lossy{library: library, proxy: faultproxy.Start(t, addr)}
	l.stage = newStage(t, addr, queue.Config{Library: library, Events: "all"})
	var err error
	l.caller, err = queue.Open(l.Context(), stages.Client(t, l.proxy.Addr), queue.Config{Namespace: l.Q.Namespace(), Library: library, Logger: l.Q.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// at moves the clock.
func (l *lossy) at(d time.Duration) {
	testclock.Set(l.T, l.Redis, l.Q.Root(0), testclock.Start.Add(d))
}

// tasks enqueues around the proxy and names what it enqueued.
func (l *lossy) tasks(tasks ...queue.Task) []string {
	ids := l.Enqueue(tasks...)
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
	return answer(l.caller.Attempts().Settle(l.Context(), 0, "w", "call", outcomes, next))
}

// answer is what a caller is told.
func answer(value any, err error) any {
	if err != nil {
		return err
	}
	if trip, ok := value.(queue.Reply); ok {
		// The order of the claims of one reply does not matter. When to look again is
		// a hint: workers wait for the token of the queue. What else a lost try ended is
		// in the events, and not told again.
		trip.Look, trip.Ended = 0, 0
		slices.SortFunc(trip.Claims, func(a, b queue.Claim) int { return strings.Compare(a.ID, b.ID) })
		return trip
	}
	return value
}

var (
	// In a hash; in the lines of a state, and the last word of its first line.
	randomCall = regexp.MustCompile(`((?:call|drained_by) = |\\n(?:cancelled_by|suspended_by|enqueued_by)=|:state:\S+ \(string\)\s+"(?:\S+ ){6})[0-9A-Z]{12}\b`)
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
	text = strings.ReplaceAll(text, l.Q.Namespace(), "first")
	text = randomCall.ReplaceAllString(text, "${1}C")
	return streamID.ReplaceAllString(text, "  entry ")
}

// state is all that is stored.
func (l *lossy) state() string {
	text := redistest.Dump(l.T, l.Redis, l.Q.Namespace()+":")
	if l.second != "" {
		text += redistest.Dump(l.T, l.Redis, l.second+":")
	}
	return l.plain(text)
}

func TestReplyLost(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	t.Parallel()
	for _, c := range losses {
		t.Run(c.holds, func(t *testing.T) {
			t.Parallel()
			// run returns the answer and the state after a call of which so many
			// answers were lost.
			run := func(times int) (told, state string) {
				l := newLossy(t)
				cut := l.proxy.CutReply(faultproxy.Script(l.library.Handle(c.script)), times)
				value := c.call(l)
				for range times {
					cut.Await(t)
				}
				told = l.plain(fmt.Sprintf("%+v", value))
				state = rejections.ReplaceAllString(l.state(), "") // each call that was refused may be told, and counted
				l.Redis.Del(l.Context(), l.Key("clock"))           // an audit would ask what it is
				l.Audit(l.Q)
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
	redistest.NoRace(t, "one call at a time")
	t.Parallel()
	for _, c := range losses {
		t.Run(c.holds, func(t *testing.T) {
			t.Parallel()
			l := newLossy(t)
			var request []any
			match := faultproxy.Script(l.library.Handle(c.script))
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
			if err := l.Redis.Do(l.Context(), request...).Err(); err != nil {
				t.Fatal(err)
			}
			after := rejections.ReplaceAllString(l.state(), "") // that it was refused may be told
			if diff := redistest.Diff(rejections.ReplaceAllString(before, ""), after); diff != "" {
				t.Errorf("%.40q that comes late has changed\n%s", request, diff)
			}
		})
	}
}

var rejections = regexp.MustCompile(`(?m)^.*(event_count|event_bytes) = .*\n|^  entry .*events = "(rejected [^"\\]*\\n)+".*\n|, first = \d+`)

// moveOn has others take what is ready, and complete half of it; and worker w, whose
// calls these are, take new work, if it is still there.
func (l *lossy) moveOn(there bool) {
	l.Helper()
	claims := l.fetch("other", 1, 100, time.Minute)
	var outcomes []queue.Outcome
	for i := 0; i < len(claims); i += 2 {
		outcomes = append(outcomes, queue.Outcome{ID: claims[i].ID, Epoch: claims[i].Epoch, Verb: queue.Complete})
	}
	trip, err := l.Q.Attempts().Settle(l.Context(), 0, "other", "another-call", outcomes, ask(2, 1, time.Minute))
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
		if reads := strings.HasPrefix(name, "read") || name == "recall" || name == "explain"; tested == reads {
			t.Errorf("lua/%s.lua: a call that loses its reply is tested: %v; it only reads: %v", name, tested, reads)
		}
	}
}
