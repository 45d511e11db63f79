package demo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/events"
)

// planted are the events of a scene that kept its promises.
type planted []events.Event

// due is the instant of all deadlines.
var due = time.UnixMilli(1_800_000_000_000)

// put adds an event so many ms after due.
func (p *planted) put(id, kind string, ms int) *events.Event {
	*p = append(*p, events.Event{TaskID: id, Kind: kind, At: due.Add(time.Duration(ms) * time.Millisecond)})
	return &(*p)[len(*p)-1]
}

// at returns the place of the n-th event of a kind of a task.
func (p planted) at(id, kind string, n int) int {
	for i, e := range p {
		if e.TaskID == id && e.Kind == kind {
			if n--; n == 0 {
				return i
			}
		}
	}
	panic(id + " has no " + kind)
}

// promise is a broken promise: a change to what happened, and what the scene says.
type promise struct {
	name   string
	want   string
	broken func(p planted) planted
}

// late moves an event, which happens so many ms after due.
func late(id, kind string, n, ms int) func(planted) planted {
	return func(p planted) planted {
		p[p.at(id, kind, n)].At = due.Add(time.Duration(ms) * time.Millisecond)
		return p
	}
}

func without(id, kind string, n int) func(planted) planted {
	return func(p planted) planted { i := p.at(id, kind, n); return slices.Delete(p, i, i+1) }
}

func twice(id, kind string) func(planted) planted {
	return func(p planted) planted { return append(p, p[p.at(id, kind, 1)]) }
}

func renamed(id, kind, to string) func(planted) planted {
	return func(p planted) planted { p[p.at(id, kind, 1)].Kind = to; return p }
}

// swapped lets the n-th event of a kind happen before the m-th of another kind.
func swapped(id, kind string, n int, before string, m int) func(planted) planted {
	return func(p planted) planted {
		i, j := p.at(id, kind, n), p.at(id, before, m)
		p[i], p[j] = p[j], p[i]
		return p
	}
}

func checkPromises(t *testing.T, kept func() planted, check func(planted) error, broken []promise) {
	t.Helper()
	if err := check(kept()); err != nil {
		t.Fatalf("a scene that kept its promises: %v", err)
	}
	for _, row := range broken {
		t.Run(row.name, func(t *testing.T) {
			if err := check(row.broken(kept())); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %s", err, row.want)
			}
		})
	}
}

// dead is the worker that was killed, a second after its first claim.
var dead = victim{id: "victim", tasks: []string{"0", "1", "2", "3", "4"}, lease: 3 * time.Second, held: time.Second}

func crashEvents() (p planted) {
	for _, id := range dead.tasks {
		p.put(id, "task_enqueued", -2000)
	}
	for _, id := range dead.tasks {
		p.put(id, "task_started", -2000).Worker = dead.id
	}
	for _, id := range dead.tasks[:dated] {
		p.put(id, "task_timed_out", 500).Fields = map[string]string{"deadline_at": fmt.Sprint(due.UnixMilli())}
	}
	for _, id := range dead.tasks[dated:] {
		p.put(id, "task_lease_lost", 2500)
		e := p.put(id, "task_started", 2501)
		e.Worker, e.Epoch = "other", 2
		e = p.put(id, "task_completed", 2502)
		e.Worker, e.Epoch = "other", 2
	}
	return p
}

func TestABrokenPromiseOfCrashIsFound(t *testing.T) {
	by := func(id, kind string, n int, worker string) func(planted) planted {
		return func(p planted) planted { p[p.at(id, kind, n)].Worker = worker; return p }
	}
	check := func(p planted) error { return checkCrash(p, dead, "other") }
	checkPromises(t, crashEvents, check, []promise{
		{"no timeout", "the task 1 did not end", without("1", "task_timed_out", 1)},
		{"no completion", "the task 4 did not end", without("4", "task_completed", 1)},
		{"two timeouts", "the task 1 ended 2 times: timed_out, timed_out", twice("1", "task_timed_out")},
		{"two completions", "the task 4 ended 2 times: completed, completed", twice("4", "task_completed")},
		{"a completion after the timeout", "the task 1 ended 2 times: timed_out, completed", func(p planted) planted {
			e := p[p.at("1", "task_timed_out", 1)]
			e.Kind = "task_completed"
			return append(p, e)
		}},
		{"a timeout that is late", "the timeout of 1 came 501ms late, and must come within 500ms", late("1", "task_timed_out", 1, 501)},
		{"a timeout before the deadline", "the timeout of 1 came 1ms too early", late("1", "task_timed_out", 1, -1)},
		{"a timeout without its deadline", "the event task_timed_out has no deadline_at", func(p planted) planted {
			p[p.at("1", "task_timed_out", 1)].Fields = nil
			return p
		}},
		{"a failure in place of the timeout", "the task 1 was enqueued, started, failed; want enqueued, started, timed_out", renamed("1", "task_timed_out", "task_failed")},
		{"a dated task runs elsewhere", "the task 1 was enqueued, started, started, timed_out; want", func(p planted) planted {
			return slices.Insert(p, p.at("1", "task_timed_out", 1), p[p.at("1", "task_started", 1)])
		}},
		{"never claimed by the dead worker", "the task 2 was enqueued, timed_out; want", without("2", "task_started", 1)},
		{"claimed by another worker than the dead one", "the task 2 was claimed by the worker third, and not by the one that was killed", by("2", "task_started", 1, "third")},
		{"not given back", "the task 3 was enqueued, started, started, completed; want", without("3", "task_lease_lost", 1)},
		{"given back too late", "the task 3 was given back 501ms late, and must be within 500ms", late("3", "task_lease_lost", 1, 2501)},
		{"given to another before the lease was lost", "the task 3 was enqueued, started, started, lease_lost, completed; want", swapped("3", "task_lease_lost", 1, "task_started", 2)},
		{"completed before its claim", "the task 3 was enqueued, started, lease_lost, completed, started; want", swapped("3", "task_completed", 1, "task_started", 2)},
		{"completed by the dead worker", "the task 3 was completed by the worker victim with claim 2, and not by the other", by("3", "task_completed", 1, "victim")},
		{"completed with the claim of the dead worker", "with claim 1, and not by the other worker with claim 2", func(p planted) planted {
			p[p.at("3", "task_completed", 1)].Epoch = 1
			return p
		}},
	})
}

const timeLimit = 2 * time.Second

// fanoutEvents returns the events of an agent, of tasks that answer (a1, …) and of tasks that hang (h1, …).
func fanoutEvents() (p planted) {
	p.put("agent", "task_enqueued", -2001)
	p.put("agent", "task_started", -2001).Epoch = 1
	for i := range answers + hanging {
		kind, id := "answer", fmt.Sprint("a", i+1)
		if i >= answers {
			kind, id = "hang", fmt.Sprint("h", i-answers+1)
		}
		e := p.put(id, "task_enqueued", -2000)
		e.Owner, e.TaskKind = "agent", kind
		p.put(id, "task_started", -1999)
		if kind == "answer" {
			p.put(id, "task_completed", 0)
		}
	}
	p.put("agent", "task_suspended", -2000)
	p.put("agent", "wait_timed_out", 3).Fields = map[string]string{"wait_deadline_at": fmt.Sprint(due.UnixMilli()), "timeout_duration_ms": "2000"}
	for i := range hanging {
		p.put(fmt.Sprint("h", i+1), "task_cancelled", 500)
	}
	p.put("agent", "task_resumed", 3)
	p.put("agent", "task_started", 500).Epoch = 2
	p.put("agent", "task_completed", 501)
	return p
}

func TestABrokenPromiseOfFanoutIsFound(t *testing.T) {
	check := func(p planted) error { return checkFanout(p, "agent", "16", timeLimit) }
	field := func(name, value string) func(planted) planted {
		return func(p planted) planted { p[p.at("agent", "wait_timed_out", 1)].Fields[name] = value; return p }
	}
	checkPromises(t, fanoutEvents, check, []promise{
		{"the agent does not end", "the task agent did not end", without("agent", "task_completed", 1)},
		{"the agent ends twice", "the task agent ended 2 times: completed, completed", twice("agent", "task_completed")},
		{"the agent fails", "resumed, started, failed; want", renamed("agent", "task_completed", "task_failed")},
		{"the agent does not wake", "resumed, completed; want", without("agent", "task_started", 2)},
		{"the agent wakes too late", "the agent came 501ms late, and must come within 500ms", late("agent", "task_started", 2, 501)},
		{"the agent wakes before its limit", "the agent came 1ms too early", late("agent", "task_started", 2, -1)},
		{"the agent wakes before the limit is noticed", "suspended, started, resumed, wait_timed_out, completed; want", swapped("agent", "task_started", 2, "wait_timed_out", 1)},
		{"the agent completes before it wakes", "completed, started; want", swapped("agent", "task_completed", 1, "task_started", 2)},
		{"the wait is over without its limit", "suspended, resumed, started, completed; want", without("agent", "wait_timed_out", 1)},
		{"the wait has another limit", "the limit of the wait was 3000 ms, want 2000 ms", field("timeout_duration_ms", "3000")},
		{"the wait has no instant", "the event wait_timed_out has no wait_deadline_at", field("wait_deadline_at", "")},
		{"a task does not end", "the task a3 did not end", without("a3", "task_completed", 1)},
		{"a task that hangs is not cancelled", "the task h2 did not end", without("h2", "task_cancelled", 1)},
		{"a task ends twice", "the task a3 ended 2 times: completed, completed", twice("a3", "task_completed")},
		{"a task is cancelled twice", "the task h2 ended 2 times: cancelled, cancelled", twice("h2", "task_cancelled")},
		{"a task fails", "the task a3 was enqueued, started, failed; want", renamed("a3", "task_completed", "task_failed")},
		{"a task that hangs completes", "the task h2 was enqueued, started, completed; want enqueued, started, cancelled", renamed("h2", "task_cancelled", "task_completed")},
		{"a task completes before it starts", "the task a3 was enqueued, completed, started; want", swapped("a3", "task_completed", 1, "task_started", 1)},
		{"a task completes after the limit", "the task a3 completed after the agent had woken", late("a3", "task_completed", 1, 1)},
		{"a task is cancelled late", "the cancellation of h2 came 501ms late", late("h2", "task_cancelled", 1, 501)},
		{"a task is cancelled early", "the cancellation of h2 came 1ms too early", late("h2", "task_cancelled", 1, -1)},
		{"a task is missing", "the agent started 16 tasks that answer and 3 that hang, want 16 and 4", func(p planted) planted {
			return slices.DeleteFunc(p, func(e events.Event) bool { return e.TaskID == "h4" })
		}},
	})
	for _, result := range []string{"15", "", "null"} {
		want := fmt.Sprintf("the agent got %s results, want 16", result)
		if err := checkFanout(fanoutEvents(), "agent", result, timeLimit); err == nil || err.Error() != want {
			t.Errorf("the result %q: %v, want %s", result, err, want)
		}
	}
}
