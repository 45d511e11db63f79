package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// Nodes beyond MaxNodes are counted under - in their flow, and those of flows without a label under - in the flow -. No sum changes.
func TestNodesWithoutALabelAreFolded(t *testing.T) {
	name := redistest.Namespace(t)
	q, all := exporter(t, name, metrics.Config{})
	_, few := exporter(t, name, metrics.Config{MaxNodes: 2})
	_, one := exporter(t, name, metrics.Config{MaxKinds: 1})
	for flow, runs := range map[string]int{"f": 8, "g": 1} {
		for range runs {
			tasks := []queue.Task{{Kind: "flow." + flow}, {Kind: "flow." + flow + "/part"}}
			for i, n := range []int{4, 2, 1} {
				for range n {
					tasks = append(tasks, queue.Task{Kind: "step", Node: queue.Node{Definition: flow, Version: "1", Name: fmt.Sprint("n", i)}})
				}
			}
			cancelled(t, q, tasks)
		}
	}
	for _, test := range []struct {
		what   string
		of     map[string]float64
		labels []string
		want   float64
	}{
		{"all labels", series(gather(t, all)), []string{"flow=f node=n0", "flow=f node=n2", "flow=g node=n1", "flow=f node=-", "flow=- node=-"}, 32 + 8 + 2},
		{"two nodes", series(gather(t, few)), []string{"flow=f node=n0", "flow=f node=n1", "flow=f node=-", "flow=g node=-"}, 32 + 16 + 8 + 7},
		{"one kind", series(gather(t, one)), []string{"flow=f node=n0", "flow=- node=-", "flow=g node=n1"}, 63},
	} {
		sum := 0.0
		for _, labels := range test.labels {
			sum += test.of["curfew_flow_nodes_finished_total "+labels+" phase=Cancelled"]
		}
		runs := 0.0
		for _, flow := range []string{"f", "g", "-", "f/part"} {
			runs += test.of["curfew_flow_runs_finished_total flow="+flow+" phase=Cancelled"]
		}
		if sum != test.want || runs != 9 {
			t.Errorf("%s: %v nodes and %v runs, want %v and 9", test.what, sum, runs, test.want)
		}
	}
}

// A run with on_timeout fail has failed when it is out of time, as its caller sees it. One without has timed out.
func TestARunThatIsOutOfTimeHasThePhaseOfItsPolicy(t *testing.T) {
	q, all := exporter(t, redistest.Namespace(t), metrics.Config{})
	var runs []queue.Task // of one instant, which a sweep counts together if they are alike
	for _, policy := range []queue.OnDeadline{queue.DeadlineFail, queue.DeadlineCancelAll, ""} {
		runs = append(runs, queue.Task{Kind: "flow.f", Timeout: time.Millisecond, OnDeadline: policy})
	}
	if _, err := q.EnqueueAll(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "all are out of time", func() bool {
		_, err := reaper.Sweep(t.Context(), q, 0, "test", 100, time.Second)
		return err == nil && q.Client().ZCard(t.Context(), q.Root(0)+":deadlines").Val() == 0
	})
	of := series(gather(t, all))
	if failed, late := of["curfew_flow_runs_finished_total flow=f phase=Failed"], of["curfew_flow_runs_finished_total flow=f phase=Timeout"]; failed != 1 || late != 2 {
		t.Errorf("%v runs have failed and %v have timed out, want 1 and 2", failed, late)
	}
}
