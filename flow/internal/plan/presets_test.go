package plan

import (
	"testing"
	"time"
)

// The recommended times, in ms. A node has one only if it names it, and then it is the longest.
func TestRecommendedTimes(t *testing.T) {
	want := map[string][2]int64{"llm_call": {120000, 300000}, "workflow_call": {1800000, 3600000}, "mcp_tool": {30000, 120000}, "http_request": {30000, 120000}, "update_context": {5000, 30000}}
	if len(Presets) != len(want) {
		t.Errorf("there are %d presets", len(Presets))
	}
	for _, p := range Presets {
		if got := [2]int64{p.Least.Milliseconds(), p.Most.Milliseconds()}; got != want[p.Name] || p.Why == "" {
			t.Errorf("%s is %v, want %v", p.Name, got, want[p.Name])
		}
	}
	d, err := Read([]byte(dag(`{"name":"a","executor":{"type":"llm_call"},"attempt_timeout":"preset llm_call","timeout":"preset workflow_call"},{"name":"b","executor":{"type":"llm_call"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	named, unnamed := d.Templates["main"].DAG.Nodes[0].Times, d.Templates["main"].DAG.Nodes[1].Times
	if want := (Times{Attempt: Span{Set: true, Time: 5 * time.Minute}, Total: Span{Set: true, Time: time.Hour}}); named != want || unnamed != (Times{}) {
		t.Errorf("a node that names presets has %+v, and one that names none %+v", named, unnamed)
	}
}
