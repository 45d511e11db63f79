package races

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// lossy is a namespace with a stopped clock, and a proxy that loses the replies of some calls. With
// equal time and ids, the state after a repeated call must be equal to that after a call that was
// made once.
type lossy struct {
	*stage
	library *lua.Library
	proxy   *faultproxy.Proxy
	caller  *queue.Queue // through the proxy; Stage.Q connects directly
	named   []string     // ids, in the order in which the test got them
	second  string       // another namespace, if the test opened one
}

func newLossy(t *testing.T) *lossy {
	t.Helper()
	addr := redistest.Shared(t).Addr
	library := testclock.Library(t, harness.Client(t, addr))
	l := &lossy{library: library, proxy: faultproxy.Start(t, addr)}
	l.stage = newStage(t, addr, queue.Config{Library: library, Events: "all"})
	var err error
	l.caller, err = queue.Open(l.Context(), harness.Client(t, l.proxy.Addr), queue.Config{Namespace: l.Q.Namespace(), Library: library, Logger: l.Q.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// at sets the clock.
func (l *lossy) at(d time.Duration) {
	testclock.Set(l.T, l.Redis, l.Q.Root(0), testclock.Start.Add(d))
}

// tasks enqueues directly, and adds the ids to named.
func (l *lossy) tasks(tasks ...queue.Task) []string {
	ids := l.Enqueue(tasks...)
	l.named = append(l.named, ids...)
	return ids
}

// running enqueues tasks directly, and claims all of them for worker w.
func (l *lossy) running(tasks ...queue.Task) []string {
	ids := l.tasks(tasks...)
	if claims := l.fetch("w", 1, len(ids), time.Minute); len(claims) != len(ids) {
		l.Fatalf("fetch claimed %d of %d tasks", len(claims), len(ids))
	}
	return ids
}

// settle reports through the proxy.
func (l *lossy) settle(next claim.Ask, outcomes ...queue.Outcome) any {
	for i := range outcomes {
		if outcomes[i].Epoch == 0 {
			outcomes[i].Epoch = 1
		}
	}
	return answer(claim.Of(l.caller).Settle(l.Context(), 0, "w", "call", outcomes, next))
}

// answer returns the part of a reply that must not depend on lost replies.
func answer(value any, err error) any {
	if err != nil {
		return err
	}
	if trip, ok := value.(claim.Reply); ok {
		// The order of the claims does not matter. Look is a hint: workers wait for the token
		// of the queue. Tasks that a lost try ended are in the events, but not in Ended again. Repeat says which
		// try it was.
		trip.Look, trip.Ended, trip.Repeat = 0, 0, false
		slices.SortFunc(trip.Claims, func(a, b queue.Claim) int { return strings.Compare(a.ID, b.ID) })
		return trip
	}
	return value
}

var (
	// A random call is in a hash, in the lines of a state, and the last word of its first line.
	randomCall = regexp.MustCompile(`((?:call|drained_by) = |\\n(?:cancelled_by|suspended_by|enqueued_by)=|:state:\S+ \(string\)\s+"(?:\S+ ){6})[0-9A-Z]{12}\b`)
	streamID   = regexp.MustCompile(`(?m)^  \d{13}-\d+ `)
)

// plain replaces what differs between runs: ids, namespaces, random calls and stream ids.
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

// state returns everything that is stored, as plain text.
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
			// run returns the caller's result and the state after a call whose first replies
			// were lost.
			run := func(times int) (told, state string) {
				l := newLossy(t)
				cut := l.proxy.CutReply(faultproxy.Script(l.library.Handle(c.script)), times)
				value := c.call(l)
				for range times {
					cut.Await(t)
				}
				told = l.plain(fmt.Sprintf("%+v", value))
				state = rejections.ReplaceAllString(l.state(), "") // each try that is refused can have an event, and be counted
				l.Redis.Del(l.Context(), l.Key("clock"))           // the audit does not know this key
				l.Audit(l.Q)
				return told, state
			}
			told, state := run(0)
			for _, times := range []int{1, rounds(1) + 1} {
				toldThen, stateThen := run(times)
				if toldThen != told {
					t.Errorf("with %d lost replies the caller gets\n%s\nwithout\n%s", times, toldThen, told)
				}
				if diff := redistest.Diff(state, stateThen); diff != "" {
					t.Errorf("with %d lost replies the state differs:\n%s", times, diff)
				}
			}
		})
	}
}

// A request that was given up can still arrive, after its repeat and after other calls. It changes
// nothing.
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
			after := rejections.ReplaceAllString(l.state(), "") // its refusal can have an event
			if diff := redistest.Diff(rejections.ReplaceAllString(before, ""), after); diff != "" {
				t.Errorf("a late %.40q changed\n%s", request, diff)
			}
		})
	}
}

var rejections = regexp.MustCompile(`(?m)^.*(event_count|event_bytes) = .*\n|^  entry .*events = "(rejected [^"\\]*\\n)+".*\n|, first = \d+`)

// moveOn makes other calls: another worker fetches the ready tasks and completes half of them. If
// there is true, worker w fetches a new task.
func (l *lossy) moveOn(there bool) {
	l.Helper()
	claims := l.fetch("other", 1, 100, time.Minute)
	var outcomes []queue.Outcome
	for i := 0; i < len(claims); i += 2 {
		outcomes = append(outcomes, queue.Outcome{ID: claims[i].ID, Epoch: claims[i].Epoch, Verb: queue.Complete})
	}
	trip, err := claim.Of(l.Q).Settle(l.Context(), 0, "other", "another-call", outcomes, ask(2, 1, time.Minute))
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
		if reads := library.Reads(name); tested == reads {
			t.Errorf("lua/call/%s.lua: has a loss: %v; only reads: %v; want a loss for each call that writes", name, tested, reads)
		}
	}
}
