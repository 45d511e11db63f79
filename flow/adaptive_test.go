package flow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// An adaptive time is made of what the tasks of the kind took when the run began, and what was taken is on the record. It is the most
// time while too few have ended, and between the least and the most one afterwards. The parts of a run have what the run has.
func TestAnAdaptiveTimeIsTakenWhenTheRunBegins(t *testing.T) {
	s := newStage(t)
	worker.Handle(s.w, "x", func(context.Context, any) (any, error) { return nil, nil })
	node := `"executor":{"type":"x"},"attempt_timeout":"adaptive","adaptive":{"least":"%s","most":"9m","factor":%v}`
	text := `{"id":"%s","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"wait","executor":{"type":"wait"}},
		{"name":"a","dependencies":["wait"],` + node + `},{"name":"p","template":"part","dependencies":["wait"]}]}},
		{"name":"part","dag":{"tasks":[{"name":"b",` + node + `}]}}]}}`
	s.put(fmt.Sprintf(text, "few", "7s", 2, "7s", 2))
	s.put(fmt.Sprintf(text, "many", "1ms", 2, "7s", 2))
	few := s.enqueue("flow.few", "")
	s.drain()
	for range 100 {
		s.enqueue("x", "")
	}
	s.drain()
	many := s.enqueue("flow.many", "")
	s.drain()
	suggested, err := inspect.Suggest(t.Context(), s.q, "x", "nothing")
	if err != nil || suggested[0].Count != 100 || suggested[0].P995 == 0 || suggested[1] != (inspect.Suggestion{Kind: "nothing"}) {
		t.Fatalf("Suggest returns %+v, %v", suggested, err)
	}
	limit := func(id string) time.Duration {
		ms, _ := time.ParseDuration(s.get(id).Fields["attempt_timeout_ms"] + "ms")
		return ms
	}
	for _, run := range []string{few, many} {
		if _, err := s.q.Resolve(t.Context(), run+".wait", nil); err != nil {
			t.Fatal(err)
		}
	}
	s.drain()
	if a, b := limit(few+".a"), limit(few+".p.b"); a != 9*time.Minute || b != 9*time.Minute {
		t.Errorf("with too few figures the limits are %v and %v, want 9m", a, b)
	}
	if a, b := limit(many+".a"), limit(many+".p.b"); a != suggested[0].Timeout(2) || b != 7*time.Second {
		t.Errorf("the limits are %v and %v, want %v and 7s", a, b, suggested[0].Timeout(2))
	}
	for _, run := range []string{few, many} {
		if r := s.get(run); r.Status != queue.Completed {
			t.Errorf("the run is %s: %s", r.Status, r.Error)
		}
	}
}
