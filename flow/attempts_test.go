package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// timed returns a stage whose clock the test moves, with some definitions. Tasks of the kind work fail at once.
func timed(t *testing.T, texts ...string) *curfewtest.Stage {
	c := curfewtest.New(t)
	flow.Register(c.Worker)
	worker.Handle(c.Worker, "work", func(context.Context, any) (any, error) { return nil, errors.New("no") })
	for _, text := range texts {
		if _, err := flow.Put(t.Context(), c.Queue, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// All attempts of what a run tries again lie within one deadline, which counts from the first attempt, however late a worker is.
func TestAllAttemptsOfANodeHaveOneDeadline(t *testing.T) {
	inner := `{"id":"inner","spec":{"entrypoint":"main","templates":[{"name":"main","executor":{"type":"work"}}]}}`
	outer := func(node string) string {
		return `{"id":"outer","timeout":"1h","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"n",` + node + `,"continueOn":{"timeout":true,"error":true}},
			{"name":"how","dependencies":["n"],"executor":{"type":"set","values":{"phase":"{{ tasks.n.phase }}"}}}]}},
			{"name":"wrap","task":{"template":"part"}},{"name":"part","dag":{"tasks":[{"name":"a","executor":{"type":"work"}}]}}]}}`
	}
	const called, wrapped = `"executor":{"type":"workflow_call","workflow":"inner","priority":3}`, `"template":"wrap"`
	adaptive := `"adaptive":{"least":"10s","most":"20s"}`
	for _, test := range []struct {
		name, node string
		away       []time.Duration // after each attempt no worker runs for so long
		attempts   []string        // when each is created, and its deadline
		phase      string
	}{
		{"late", wrapped + `,"timeout":"20s","attempt_timeout":"8s","retry":{"limit":3}`, []time.Duration{19 * time.Second}, []string{"0s 8s", "19s 20s", "19s 20s", "19s 20s"}, "Error"},
		{"late within the time", wrapped + `,"timeout":"20s","attempt_timeout":"8s","retry":{"limit":1}`, []time.Duration{5 * time.Second}, []string{"0s 8s", "5s 13s"}, "Error"},
		{"too late", wrapped + `,"timeout":"20s","attempt_timeout":"8s","retry":{"limit":3}`, []time.Duration{25 * time.Second, time.Second}, []string{"0s 8s", "25s 25.001s"}, "Timeout"},
		{"late behind a pause", wrapped + `,"timeout":"20s","retry":{"limit":1,"backoff":{"delay":"5s"}}`, []time.Duration{17 * time.Second}, []string{"0s 20s", "17s 20s"}, "Error"},
		{"late in a pause", called + `,"timeout":"20s","attempt_timeout":"8s","retry":{"limit":1,"backoff":{"delay":"5s"}}`, []time.Duration{2 * time.Second, 3 * time.Second}, []string{"0s 8s", "2s 13s"}, "Error"},
		{"late without a time of all", called + `,"attempt_timeout":"8s","retry":{"limit":1}`, []time.Duration{19 * time.Second}, []string{"0s 8s", "19s 27s"}, "Error"},
		{"adaptive", called + `,"timeout":"adaptive",` + adaptive + `,"retry":{"limit":3}`, []time.Duration{9 * time.Second, 10 * time.Second}, []string{"0s 20s", "9s 20s", "19s 20s", "19s 20s"}, "Error"},
		{"adaptive and late", called + `,"timeout":"adaptive",` + adaptive + `,"retry":{"limit":3}`, []time.Duration{25 * time.Second, time.Second}, []string{"0s 20s", "25s 25.001s"}, "Timeout"},
		{"pinned and late", `"executor":{"type":"workflow_call","workflow":"inner","version":"1","priority":3},"timeout":"20s","retry":{"limit":3}`, []time.Duration{25 * time.Second, time.Second}, []string{"0s 20s", "25s 25.001s"}, "Timeout"},
		{"adaptive attempts", called + `,"timeout":"30s","attempt_timeout":"adaptive",` + adaptive + `,"retry":{"limit":1}`, []time.Duration{15 * time.Second}, []string{"0s 20s", "15s 30s"}, "Error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := timed(t, inner, outer(test.node))
			run := c.Enqueue(queue.Task{Kind: "flow.outer"}).ID
			begun := c.Now()
			find := func(n int) *queue.Record {
				all := c.Tasks("")
				if i := slices.IndexFunc(all, func(r *queue.Record) bool { return r.ID == attempt(run, n) }); i >= 0 {
					return all[i]
				}
				return nil
			}
			for i, away := range test.away {
				for r := find(i + 1); r == nil || !r.Status.Ended() && r.AvailableAt.IsZero() && r.Role == ""; r = find(i + 1) {
					if c.RunOne() == nil {
						t.Fatalf("attempt %d does not end", i+1)
					}
				}
				c.Advance(away)
			}
			c.Drain()
			var got []string
			for n := 1; find(n) != nil; n++ {
				got = append(got, fmt.Sprint(find(n).CreatedAt.Sub(begun), " ", find(n).Deadline.Sub(begun)))
			}
			if !slices.Equal(got, test.attempts) {
				t.Errorf("the attempts are %v, want %v", got, test.attempts)
			}
			r, want := c.Get(run), `{"outputs":{"parameters":{"phase":"`+test.phase+`"}}}`
			if string(r.Result) != want {
				t.Errorf("the run is %s with %s%s, want %s", r.Status, r.Result, r.Error, want)
			}
			seen, err := flow.Read(t.Context(), c.Queue, run, false)
			if err != nil {
				t.Fatal(err)
			}
			if n := seen.Nodes[0]; string(n.Phase) != test.phase || n.Attempts != len(test.attempts) || string(seen.Nodes[1].Phase) != "Succeeded" {
				t.Errorf("Read returns %+v and %+v", n, seen.Nodes[1])
			}
		})
	}
}

// attempt returns the id of an attempt of the node n.
func attempt(run string, n int) string {
	if n == 1 {
		return run + ".n"
	}
	return fmt.Sprintf("%s.n__r%d", run, n)
}

// The expression of a retry that cannot be evaluated ends a leaf, a wrapper and a call of a run, and each says the same of it.
func TestARetryThatCannotBeEvaluatedSaysWhy(t *testing.T) {
	for of, node := range map[string]string{"leaf": `"executor":{"type":"work"}`, "wrapper": `"template":"wrap"`, "run": `"executor":{"type":"workflow_call","workflow":"inner"}`} {
		t.Run(of, func(t *testing.T) {
			c := timed(t, `{"id":"inner","spec":{"entrypoint":"main","templates":[{"name":"main","executor":{"type":"work"}}]}}`,
				`{"id":"outer","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"n",`+node+`,"retry":{"limit":3,"expression":"tasks.n.outputs.parameters.n + 1 > 0"}}]}},
				{"name":"wrap","task":{"template":"leaf"}},{"name":"leaf","executor":{"type":"work"}}]}}`)
			run := c.Enqueue(queue.Task{Kind: "flow.outer"}).ID
			c.Drain()
			const want = "no; the retry expression cannot be evaluated, so there is no retry: at character "
			if r := c.Get(run); r.Phase() != "Error" || !strings.HasPrefix(r.Error, "node n: Error: "+want) {
				t.Errorf("the run is %s: %s", r.Phase(), r.Error)
			}
			seen, err := flow.Read(t.Context(), c.Queue, run, false)
			if err != nil {
				t.Fatal(err)
			}
			if n := seen.Nodes[0]; n.Attempts != 1 || !strings.HasPrefix(n.Msg, want) {
				t.Errorf("the node has made %d attempts: %s", n.Attempts, n.Msg)
			}
		})
	}
}
