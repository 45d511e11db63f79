package flow_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// cost is what a server has done: calls of clients, and commands with those of scripts.
type cost struct{ calls, commands int }

// costOf runs a definition to its end with one worker on a server of its own.
func costOf(t *testing.T, text string) cost {
	t.Helper()
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Partitions: 1})
	stored, err := flow.Put(t.Context(), q, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	before := costSoFar(t, rdb)
	r, err := q.Enqueue(t.Context(), queue.Task{Kind: "flow." + stored.ID})
	if err != nil {
		t.Fatal(err)
	}
	_, stop := work(t, q)
	defer stop()
	if _, err := q.Result(t.Context(), r.ID); err != nil {
		t.Error(err)
	}
	after := costSoFar(t, rdb)
	return cost{after.calls - before.calls, after.commands - before.commands}
}

func costSoFar(t *testing.T, rdb *redis.Client) (c cost) {
	t.Helper()
	text, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, rest, found := strings.Cut(line, ":calls=")
		if !found || name == "cmdstat_info" {
			continue
		}
		n, _, _ := strings.Cut(rest, ",")
		calls, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		c.commands += calls
		if name == "cmdstat_fcall" || name == "cmdstat_fcall_ro" || name == "cmdstat_evalsha" {
			c.calls += calls
		}
	}
	return c
}

// A further node costs what docs/explanation/flows.md says, also in a run that has many.
func TestWhatANodeCosts(t *testing.T) {
	chain := func(n int) string {
		nodes := []string{`{"name":"n0","executor":{"type":"x"}}`}
		for i := 1; i < n; i++ {
			nodes = append(nodes, fmt.Sprintf(`{"name":"n%d","dependencies":["n%d"],"executor":{"type":"x"}}`, i, i-1))
		}
		return dag("chain", nodes...)
	}
	wide := func(n int) string {
		var nodes []string
		for i := range n {
			nodes = append(nodes, fmt.Sprintf(`{"name":"n%d","executor":{"type":"x"}}`, i))
		}
		return dag("wide", nodes...)
	}
	for _, test := range []struct {
		name                    string
		of                      func(int) string
		mostCalls, mostCommands float64 // of a node
	}{{"chain", chain, 12, 240}, {"fan-out", wide, 2, 40}} {
		few, many := costOf(t, test.of(10)), costOf(t, test.of(110))
		calls, commands := float64(many.calls-few.calls)/100, float64(many.commands-few.commands)/100
		t.Logf("%s: a run of 10 nodes: %+v; each further node: %.1f calls, %.0f commands", test.name, few, calls, commands)
		if calls > test.mostCalls || commands > test.mostCommands {
			t.Errorf("%s: a node costs %.1f calls and %.0f commands, want %.0f and %.0f at most", test.name, calls, commands, test.mostCalls, test.mostCommands)
		}
	}
}
