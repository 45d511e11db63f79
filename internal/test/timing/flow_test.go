package timing_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/timing"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// chain returns a definition of n nodes, one after the other.
func chain(n int) []byte {
	nodes := make([]string, n)
	for i := range nodes {
		after := ""
		if i > 0 {
			after = fmt.Sprintf(`"dependencies":["n%d"],`, i-1)
		}
		nodes[i] = fmt.Sprintf(`{"name":"n%d",%s"executor":{"type":"x"}}`, i, after)
	}
	return fmt.Appendf(nil, `{"id":"chain","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[%s]}}]}}`, strings.Join(nodes, ","))
}

// One program follows definitions, and another one runs the leaves. Both take tasks of the same queue. What a worker cannot run it
// passes on to the other, which takes it at once. With a delay of a second each time, a chain takes a second for each node.
func TestTwoProgramsShareAQueue(t *testing.T) {
	const nodes, within = 8, 3 * time.Second
	s := harness.New(t, redistest.Shared(t).Addr, queue.Config{})
	if _, err := flow.Put(t.Context(), s.Q, chain(nodes)); err != nil {
		t.Fatal(err)
	}
	timing.Keep(t, s.Addr, within, func(planted bool) time.Duration {
		q := s.Another()
		if planted {
			q.Client().AddHook(waiter(200 * time.Millisecond))
		}
		follows, works := worker.New(q, worker.Config{Concurrency: 5}), worker.New(s.Another(), worker.Config{Concurrency: 5})
		flow.Register(follows)
		worker.Handle(works, "x", func(context.Context, map[string]any) (map[string]any, error) { return nil, nil })
		defer s.Run(follows.Run)()
		defer s.Run(works.Run)()
		start := time.Now()
		id := s.Enqueue(queue.Task{Kind: "flow.chain"})[0]
		if _, err := s.Q.Result(t.Context(), id); err != nil {
			t.Error(err)
		}
		return time.Since(start)
	})
}
