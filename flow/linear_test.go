package flow_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The cost of a node does not grow with the length of its run: each wake replays what has happened since the last checkpoint, and
// not the whole run. The test counts what Redis runs, what it gets and what it sends.
func TestANodeOfALongChainCostsWhatOneOfAShortChainDoes(t *testing.T) {
	t.Parallel()
	few, many := 30, size.Times(300, 300, 3000)
	short, long := costOfChain(t, few), costOfChain(t, many)
	t.Logf("for a node of a chain of %d: %v; of %d: %v", few, short, many, long)
	for _, what := range []string{"commands", "bytes to Redis", "bytes from Redis"} {
		if long[what] > 3*short[what] {
			t.Errorf("a node of a chain of %d costs %.0f %s, and of a chain of %d %.0f", many, long[what], what, few, short[what])
		}
	}
}

// costOfChain runs a chain, and returns what a node costs.
func costOfChain(t *testing.T, n int) map[string]float64 {
	t.Helper()
	s := newStageOn(t, redistest.Start(t).Client(t))
	worker.Handle(s.w, "x", func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil })
	s.put(chain(n))
	id := s.enqueue("flow.chain", "")
	before := s.traffic()
	s.drain()
	after := s.traffic()
	if r := s.get(id); r.Status != queue.Completed {
		t.Fatalf("the run is %s: %s", r.Status, r.Error)
	}
	for what := range after {
		after[what] = (after[what] - before[what]) / float64(n)
	}
	return after
}

// traffic returns what the server has run, got and sent.
func (s *stage) traffic() map[string]float64 {
	s.t.Helper()
	info, err := s.q.Client().Info(s.ctx, "stats", "commandstats").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	sums := map[string]float64{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseFloat(value, 64)
		switch {
		case name == "total_net_input_bytes":
			sums["bytes to Redis"] = n
		case name == "total_net_output_bytes":
			sums["bytes from Redis"] = n
		case strings.HasPrefix(name, "cmdstat_"):
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			n, _ = strconv.ParseFloat(calls, 64)
			sums["commands"] += n
		}
	}
	return sums
}
