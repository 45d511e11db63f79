package inspect_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// nodesOf returns how often each node of a flow was cancelled.
func nodesOf(t *testing.T, q *queue.Queue, flow string) map[string]int64 {
	t.Helper()
	all, err := inspect.Figures(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, f := range all {
		if f.Queue == inspect.OtherKinds && f.Kind != inspect.OtherKinds {
			t.Errorf("there are figures of %s without a queue", f.Kind)
		}
		for _, n := range f.Nodes {
			if f.Kind == "flow."+flow {
				for _, e := range n.Ends {
					found[n.Node] += e.Count
				}
			}
		}
	}
	return found
}

// Nodes count in the figures of their definition's runs, whatever queue and partition they are in, also if many end in one call.
func TestNodesAreCountedByDefinition(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Partitions: 2})
		cancelled(t, q, queue.Task{Kind: "flow.f", Queue: "runs"}, queue.Task{Kind: "flow.g"})
		cancelled(t, q, queue.Task{Kind: "flow.f"}, queue.Task{Kind: "flow.g"})
		for _, version := range []string{"1", "2"} {
			var tasks []queue.Task
			for i := range 30 {
				name := []string{"a", "a", "b"}[i%3]
				tasks = append(tasks, queue.Task{Kind: "k", Queue: "q" + version, Timeout: time.Hour, Node: queue.Node{Definition: "f", Version: version, Name: name}})
			}
			cancelled(t, q, append(tasks, queue.Task{Kind: "k", Node: queue.Node{Definition: "g", Version: "1", Name: "a"}}, queue.Task{Kind: "k"})...)
		}
		if got, want := nodesOf(t, q, "f"), map[string]int64{"a": 40, "b": 20}; !reflect.DeepEqual(got, want) {
			t.Errorf("the nodes of f are %v, want %v", got, want)
		}
	})
}

// A client can name nodes as it likes, so their number is bounded: further nodes are counted together, and none is lost.
func TestNodesBeyondTheBoundAreCountedTogether(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, q := context.Background(), queuetest.Open(t, rdb, queue.Config{})
		cancelled(t, q, queue.Task{Kind: "flow.f"})
		key := q.Root(0) + ":figures:flow.f"
		var fields []any
		for i := int(rdb.HLen(ctx, key).Val()); i < 9_998; i++ {
			fields = append(fields, fmt.Sprintf("- node old%d ended COMPLETED", i), 1)
		}
		if err := rdb.HSet(ctx, key, fields...).Err(); err != nil {
			t.Fatal(err)
		}
		node := func(names ...string) {
			t.Helper()
			var tasks []queue.Task
			for _, name := range names {
				tasks = append(tasks, queue.Task{Kind: "k", Node: queue.Node{Definition: "f", Version: "1", Name: name}})
			}
			cancelled(t, q, tasks...)
		}
		node("a")      // one of the last two fields
		node("b")      // one field in a call
		node("c", "d") // several in a call
		node("a", "e", "e")
		got := nodesOf(t, q, "f")
		for name, want := range map[string]int64{"a": 2, "b": 0, "c": 0, "d": 0, "e": 0, inspect.OtherKinds: 5, "old9000": 1} {
			if got[name] != want {
				t.Errorf("the node %s is counted %d times, want %d", name, got[name], want)
			}
		}
		if n := rdb.HLen(ctx, key).Val(); n > 10_001 {
			t.Errorf("the hash has %d fields", n)
		}
	})
}
