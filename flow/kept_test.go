package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// rounds is a loop over items whose task has the index.
const rounds = `{"id":"rounds","inputs":{"parameters":[{"name":"items"}]},"spec":{"entrypoint":"main","templates":[{"name":"main","inputs":{"parameters":[{"name":"items"}]},
	"loop":{"items":"{{ inputs.parameters.items }}","task":{"executor":{"type":"x"},"inputs":{"parameters":[{"name":"i","value":"{{ index }}"}]}}}}]}}`

// smallStage returns a stage whose payloads have at most 64 KiB. Tasks of the kind x yield so many bytes.
func smallStage(t *testing.T, bytes int) (s *stage, ran *int) {
	t.Parallel()
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t), MaxBytes: 64 << 10})
	s = &stage{t: t, ctx: t.Context(), q: q, w: worker.New(q, worker.Config{})}
	flow.Register(s.w)
	ran = new(int)
	worker.Handle(s.w, "x", func(context.Context, any) (any, error) {
		*ran++
		return map[string]any{"n": 1, "text": strings.Repeat("y", bytes)}, nil
	})
	return s, ran
}

// list returns a JSON list of n texts of some bytes.
func list(n, bytes int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("i", bytes)+`",`, n), ",") + "]"
}

// A run that keeps more than a checkpoint has room for ends. It does not replay more and more.
func TestARunThatKeepsTooMuchEnds(t *testing.T) {
	s, ran := smallStage(t, 4000)
	s.put(rounds)
	s.ended("rounds", `{"parameters":{"items":`+list(1000, 1)+`}}`, "Error", "bytes of what its nodes have yielded, and the limit is 61440: let them store what is large")
	if *ran < 100 || *ran > 150 {
		t.Errorf("it made %d rounds, want 100 and few more", *ran)
	}
}

// A run can keep more for a while, if it ends soon.
func TestARunCanKeepMuchForAWhile(t *testing.T) {
	s, _ := smallStage(t, 2000)
	var nodes, names, sum []string
	for i := range 60 {
		nodes = append(nodes, fmt.Sprintf(`{"name":"n%d","executor":{"type":"x"}}`, i))
		names = append(names, fmt.Sprintf(`"n%d"`, i))
		sum = append(sum, fmt.Sprintf(`"{{ tasks.n%d.outputs.parameters.n }}"`, i))
	}
	nodes = append(nodes, fmt.Sprintf(`{"name":"last","dependencies":[%s],"executor":{"type":"set","values":{"all":[%s]}}}`, strings.Join(names, ","), strings.Join(sum, ",")))
	s.put(dag("much", nodes...))
	s.ended("much", "", "Succeeded", `{"all":[1,1,`)
}

// The inputs of a run are no part of what it keeps, nor are the items of its loop.
func TestARunKeepsNoInputs(t *testing.T) {
	s, ran := smallStage(t, 1)
	s.put(rounds)
	s.ended("rounds", `{"parameters":{"items":`+list(150, 420)+`}}`, "Succeeded", `{"n":1,"text":"y"}`)
	if *ran != 150 {
		t.Errorf("it made %d rounds", *ran)
	}
}

// A loop that keeps what its rounds yield replays no more for a late round than for an early one.
func TestALoopThatKeepsOutputsReplaysNoMore(t *testing.T) {
	t.Parallel()
	cost := func(n int) map[string]float64 {
		s := newStageOn(t, redistest.Start(t).Client(t))
		worker.Handle(s.w, "x", func(context.Context, any) (any, error) { return strings.Repeat("y", 2000), nil })
		s.put(rounds)
		before := s.traffic()
		s.ended("rounds", `{"parameters":{"items":`+list(n, 1)+`}}`, "Succeeded", "yyy")
		after := s.traffic()
		for what := range after {
			after[what] = (after[what] - before[what]) / float64(n)
		}
		return after
	}
	few, many := cost(60), cost(200)
	t.Logf("a round of 60 costs %v, of 200 %v", few, many)
	if many["commands"] > 1.5*few["commands"] {
		t.Errorf("a round of 200 costs %.0f commands, and of 60 %.0f", many["commands"], few["commands"])
	}
	// What a wake reads is the checkpoint, which has half of the outputs on average, and the children since then, at most 100.
	if most := float64(200/2*2000 + 100*3000); many["bytes from Redis"] > most {
		t.Errorf("a round of 200 reads %.0f bytes, want %.0f at most", many["bytes from Redis"], most)
	}
}
