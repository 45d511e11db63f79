package flow_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// counted returns how many commands Read sends for a run, and the run.
func (s *stage) counted(id string) (*flow.Run, int64) {
	s.t.Helper()
	var calls atomic.Int64
	rdb := redis.NewClient(s.q.Client().(*redis.Client).Options())
	s.t.Cleanup(func() { rdb.Close() })
	q := queuetest.Open(s.t, rdb, queue.Config{Namespace: s.q.Namespace()})
	for _, name := range []string{"evalsha", "fcall", "eval"} {
		rdb.AddHook(queuetest.Around{Name: name, Before: func() { calls.Add(1) }})
	}
	begun := time.Now()
	r, err := flow.Read(s.ctx, q, id, false)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%d nodes were read in %v with %d calls", len(r.Nodes), time.Since(begun), calls.Load())
	return r, calls.Load()
}

// A run of thousands of tokens is read in calls of 250, and no call names what another has read.
func TestReadALargeFanOut(t *testing.T) {
	tokens := harness.Times(2000, 2000, 10_000)
	s := newStage(t)
	s.put(fanOf("large", "", fmt.Sprint(tokens), `"strategy":"all"`))
	id := s.enqueue("flow.large", "")
	s.drain()
	s.complete(id+".b__b0", "b", `{}`)
	r, calls := s.counted(id)
	if len(r.Nodes) != tokens+2 || r.Nodes[1].Token != flow.TokenSiblings || r.Nodes[tokens].Key != fmt.Sprintf("b/b%d", tokens-1) || r.Nodes[tokens].Phase != flow.Ready {
		t.Errorf("%d nodes, the last token is %+v", len(r.Nodes), r.Nodes[tokens])
	}
	if calls > int64(tokens/250+10) {
		t.Errorf("%d calls", calls)
	}
}

// The rounds of a loop become known one after the other, and are read in few calls all the same. A second call for each round
// would be a failure here.
func TestReadALongLoop(t *testing.T) {
	s := newStage(t)
	worker.Handle(s.w, "quick", func(_ context.Context, in struct{ I int }) (any, error) {
		return map[string]any{"done": in.I == 299}, nil
	})
	s.put(`{"id":"long","spec":{"entrypoint":"main","templates":[{"name":"main","loop":{"until":"last.outputs.parameters.done","limit":1000,
		"task":{"executor":{"type":"quick"},"inputs":{"parameters":[{"name":"i","value":"{{ index }}"}]}}}}]}}`)
	id := s.enqueue("flow.long", "")
	s.drain()
	r, calls := s.counted(id)
	if r.Phase != flow.Succeeded || len(r.Nodes) != 300 || calls > 20 {
		t.Errorf("%s: %d nodes in %d calls", r.Phase, len(r.Nodes), calls)
	}
	for i, n := range r.Nodes {
		if n.Key != fmt.Sprintf("round/%d", i) || n.Phase != flow.Succeeded {
			t.Fatalf("node %d is %s, %s", i, n.Key, n.Phase)
		}
	}
}
