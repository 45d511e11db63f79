package requirements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The third of the three layers: synchronization points of branches.

type branch = *agentwait.Future[json.RawMessage]

// arrives schedules a branch that completes after a time, with that time as its source.
func arrives(a *agentwait.Agent, ms int, task queue.Task) branch {
	task.Kind = "fetch-data"
	return agentwait.Schedule[json.RawMessage](a, request{fmt.Sprint(ms), ms}, task)
}

func branches(a *agentwait.Agent, ms ...int) (all []branch) {
	for _, n := range ms {
		all = append(all, arrives(a, n, queue.Task{}))
	}
	return all
}

var sources = agentwait.Merge{Source: "_branch.output.source", Target: "state.results"}

// synchronize runs an agent that synchronizes branches. It returns the merged value or the
// error, and how long the agent took.
func (p *play) synchronize(s agentwait.Sync, ms ...int) (id, text string) {
	p.Helper()
	r := p.act(func(a *agentwait.Agent) (string, error) {
		v, err := agentwait.Synchronize(a, s, branches(a, ms...)...)
		return string(v), err
	})
	text = r.Error
	if r.Status == queue.Completed {
		if err := json.Unmarshal(r.Result, &text); err != nil {
			p.Fatal(err)
		}
	}
	return r.ID, text + " at " + at(r.CreatedAt, r.CompletedAt)
}

func strategies(t *testing.T) {
	const forever = agentwait.NoTimeout
	for _, c := range []struct {
		claim string
		sync  agentwait.Sync
		ms    []int
		want  string
	}{
		{"all", agentwait.Sync{Timeout: forever}, []int{300, 100, 200}, `{"state":{"results":["300","100","200"]}} at 300ms`},
		{"any", agentwait.Sync{Timeout: forever, Any: true}, []int{300, 100, 200}, `{"state":{"results":["100"]}} at 100ms`},
		{"m_of_n", agentwait.Sync{Timeout: forever, M: 2}, []int{300, 100, 200}, `{"state":{"results":["100","200"]}} at 200ms`},
		{"the timeout proceeds with the completed branches", agentwait.Sync{Timeout: time.Second, Proceed: true}, []int{300, 5000, 1000}, `{"state":{"results":["300","1000"]}} at 1.301s`},
		{"the timeout fails", agentwait.Sync{Timeout: time.Second}, []int{300, 5000, 1000},
			"Timeout: Synchronization timeout exceeded: 2 completed, 0 failed, 0 cancelled, 1 pending at 1.301s"},
		{"the limit does not begin before the first branch ends", agentwait.Sync{Timeout: time.Second, Proceed: true}, []int{60_000, 60_500}, `{"state":{"results":["60000","60500"]}} at 1m0.5s`},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := newPlay(t)
			c.sync.Merge = sources
			if _, got := p.synchronize(c.sync, c.ms...); got != c.want {
				t.Errorf("the result is\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// The limit begins when the first branch arrives, and no other branch moves it. A branch that
// arrives at the limit counts, and one that arrives a millisecond later does not.
func firstArrivalStartsTheClock(t *testing.T) {
	for _, c := range []struct{ last, want string }{
		{"2000", `["1000","1500","2000"] at 2s`},
		{"2001", `["1000","1500"] at 2.001s`},
	} {
		t.Run(c.last, func(t *testing.T) {
			p := newPlay(t)
			var last int
			fmt.Sscan(c.last, &last)
			agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (json.RawMessage, error) {
				s := agentwait.Sync{Timeout: time.Second, Proceed: true, Merge: agentwait.Merge{Source: sources.Source}}
				return agentwait.Synchronize(a, s, branches(a, 1000, 1500, last)...)
			})
			p.start()
			id := p.agent("agent", nil)
			begun := p.now
			fields := func() map[string]string { return p.rdb.HGetAll(t.Context(), p.q.Root(0)+":wait:"+id).Val() }
			p.pass(900 * time.Millisecond)
			if w := fields(); w["first_at"] != "" || w["wait_deadline_at"] != "" || w["limit_ms"] != "1000" {
				t.Errorf("before the first arrival: %v", w)
			}
			text := func(d time.Duration) string { return fmt.Sprint(begun.Add(d).UnixMilli()) }
			for _, after := range []time.Duration{200 * time.Millisecond, 500 * time.Millisecond} {
				p.pass(after)
				if w := fields(); w["first_at"] != text(time.Second) || w["wait_deadline_at"] != text(2*time.Second) {
					t.Errorf("at %s: %v, want the limit to begin at 1s", at(begun, p.now), w)
				}
			}
			if c := p.children(id)[0]; !c.CompletedAt.Equal(begun.Add(time.Second)) {
				t.Errorf("the first arrived at %v", c.CompletedAt)
			}
			r := p.end(id)
			if got := string(r.Result) + " at " + at(r.CreatedAt, r.CompletedAt); got != c.want {
				t.Errorf("the result is %s, want %s", got, c.want)
			}
		})
	}
}

// The computed default is 1.5 × the longest time of a branch × the number of branches. It is at
// most half an hour, and half an hour if no branch has a time.
func computedTimeout(t *testing.T) {
	times := func(n int, tasks ...queue.Task) (all []queue.Task) {
		for range n {
			all = append(all, tasks...)
		}
		return all
	}
	for _, c := range []struct {
		claim string
		tasks []queue.Task
		want  string
	}{
		{"3 of 1000ms", times(3, queue.Task{AttemptTimeout: time.Second}), "4500"},
		{"10 of 120000ms", times(10, queue.Task{Timeout: 120_000 * time.Millisecond}), "1800000"},
		{"the longest counts", []queue.Task{{Timeout: time.Second}, {Timeout: 4 * time.Second}, {}}, "18000"},
		{"20 of 120000ms: capped", times(20, queue.Task{Timeout: 120_000 * time.Millisecond}), "1800000"},
		{"no branch has a time", times(3, queue.Task{}), "1800000"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := newPlay(t)
			agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
				var all []branch
				for _, task := range c.tasks {
					all = append(all, arrives(a, 100, task))
				}
				_, err := agentwait.Synchronize(a, agentwait.Sync{}, all...)
				return "", err
			})
			p.start()
			id := p.agent("agent", nil)
			p.rest()
			if got := p.rdb.HGet(t.Context(), p.q.Root(0)+":wait:"+id, "limit_ms").Val(); got != c.want {
				t.Errorf("the limit is %sms, want %s", got, c.want)
			}
			e, err := inspect.Explain(t.Context(), p.q, id)
			if err != nil || e.Wait == nil || fmt.Sprint(time.Duration(e.Wait.LimitAfter).Milliseconds()) != c.want {
				t.Errorf("the agent is explained as %+v, %v", e.Wait, err)
			}
			p.end(id)
		})
	}
}

// The two error texts of a timeout: with proceed if no branch completed, and without.
func textsOfATimeout(t *testing.T) {
	for _, c := range []struct {
		proceed bool
		want    string
	}{
		{true, "Timeout: No siblings completed before timeout: 0 completed, 1 failed, 0 cancelled, 1 pending"},
		{false, "Timeout: Synchronization timeout exceeded: 0 completed, 1 failed, 0 cancelled, 1 pending"},
	} {
		p := newPlay(t)
		worker.Handle(p.w, "fails", func(context.Context, any) (string, error) { return "", errAlways })
		r := p.act(func(a *agentwait.Agent) (string, error) {
			v, err := agentwait.Synchronize(a, agentwait.Sync{Timeout: time.Second, Proceed: c.proceed},
				agentwait.Schedule[json.RawMessage](a, nil, queue.Task{Kind: "fails"}), arrives(a, 5000, queue.Task{}))
			return string(v), err
		})
		if r.Status != queue.Failed || r.Error != c.want {
			t.Errorf("the agent is %s: %q, want FAILED: %q", r.Status, r.Error, c.want)
		}
		// The agent failed, so its running branch ends with it.
		if got := p.statuses(r.ID); got != "FAILED CANCELLED:owner_ended" {
			t.Errorf("the branches are %s", got)
		}
	}
}

// With Proceed the late branches keep running. They complete, and their results are dropped.
func lateBranchesAreDropped(t *testing.T) {
	p := newPlay(t)
	var merged string
	r := p.act(func(a *agentwait.Agent) (string, error) {
		v, err := agentwait.Synchronize(a, agentwait.Sync{Timeout: time.Second, Proceed: true, Merge: sources}, branches(a, 100, 5000)...)
		if err != nil {
			return "", err
		}
		if err := agentwait.Sleep(a, time.Minute); err != nil {
			return "", err
		}
		merged = string(v) // in a replay after the late branch has completed
		return "", nil
	})
	if got := p.children(r.ID)[1]; got.Status != queue.Completed || at(r.CreatedAt, got.CompletedAt) != "5s" || got.Result == nil {
		t.Errorf("the late branch is %s at %s", got.Status, at(r.CreatedAt, got.CompletedAt))
	}
	if merged != `{"state":{"results":["100"]}}` {
		t.Errorf("the merged result is %s", merged)
	}
}

// A synchronization point inside a branch has a limit of its own. Neither limit changes the
// other.
func nestedMeetings(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "inner", func(a *agentwait.Agent, _ any) (json.RawMessage, error) {
		s := agentwait.Sync{Timeout: 10 * time.Second, Proceed: true, Merge: agentwait.Merge{Source: sources.Source}}
		return agentwait.Synchronize(a, s, branches(a, 2000, 60_000)...) // ends at 12 s
	})
	r := p.act(func(a *agentwait.Agent) (string, error) {
		s := agentwait.Sync{Timeout: 4 * time.Second, Proceed: true, Merge: agentwait.Merge{Strategy: agentwait.KeyedByBranch}}
		early := agentwait.Schedule[json.RawMessage](a, nil, queue.Task{Kind: "inner"})
		// The outer limit begins at 9s and ends at 13s, so the inner agent ends in time.
		v, err := agentwait.Synchronize(a, s, arrives(a, 9000, queue.Task{}), early, arrives(a, 14_000, queue.Task{}))
		return string(v), err
	})
	p.gives(r, `{"0":{"source":"9000","data":"data-from-9000"},"1":["2000"]}`)
	if took := at(r.CreatedAt, r.CompletedAt); took != "13.001s" {
		t.Errorf("the outer synchronization took %s, want 13.001s", took)
	}
	var limits []string
	for _, e := range p.emitted("wait_timed_out") {
		limits = append(limits, fmt.Sprint(e["timeout_duration_ms"]))
	}
	if fmt.Sprint(limits) != "[10000 4000]" {
		t.Errorf("the limits were %v, want 10000 and 4000", limits)
	}
}

// Timeouts of all three layers emit events with the fields that the document lists.
func eventsOfTheLayers(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		v, err := agentwait.Synchronize(a, agentwait.Sync{Timeout: time.Second, Proceed: true}, branches(a, 100, 5000)...)
		if err != nil {
			return "", err
		}
		_, err = agentwait.Await(a, arrives(a, 60*60_000, queue.Task{AttemptTimeout: 10 * time.Second, MaxRetries: 1, OnTimeout: queue.OnTimeoutRetry}))
		var late *queue.TaskTimedOutError
		if !errors.As(err, &late) || late.Type != "attempt" {
			return "", err
		}
		return string(v), agentwait.Sleep(a, 24*time.Hour)
	})
	p.start()
	id := p.task(queue.Task{Kind: "agent", Timeout: time.Hour, OnDeadline: queue.DeadlineFail}, nil)
	p.end(id)
	has := func(e map[string]any, task, kind, limit, ms, policy string) {
		t.Helper()
		root, _, _ := cutLast(task)
		if e["task_id"] != task || e["timeout_type"] != limit || e["timeout_duration_ms"] != ms || e["policy_applied"] != policy ||
			(root != "" && e["workflow_run_id"] != root) || e["task_kind"] != kind || e["lag_ms"] != "1" {
			t.Errorf("the event of %s is %v, want %s %s %s", task, e, limit, ms, policy)
		}
	}
	waits, attempts := p.emitted("wait_timed_out"), p.emitted("attempt_timed_out")
	if len(waits) != 1 || len(attempts) != 1 {
		t.Fatalf("events: %v, %v, want one of each", waits, attempts)
	}
	// The limit counts from the first arrival, at 100 ms.
	has(waits[0], id, "agent", "synchronization", "1000", "proceed_with_available")
	has(attempts[0], id+".3", "fetch-data", "attempt", "10000", "retry")
	ends := p.timeouts()
	has(ends[id+".3"], id+".3", "fetch-data", "attempt", "10000", "fail")
	has(ends[id], id, "agent", "execution", "3600000", "fail")
	has(ends[id+".4"], id+".4", "sleep", "workflow", ends[id+".4"]["timeout_duration_ms"].(string), "fail")
	if len(ends) != 3 {
		t.Errorf("%d timeout events, want 3: %v", len(ends), ends)
	}
}

// cutLast splits an id into its owner and its last part.
func cutLast(id string) (owner, name string, child bool) {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '.' {
			return id[:i], id[i+1:], true
		}
	}
	return "", id, false
}
