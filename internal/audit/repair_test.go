package audit

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// repaired plans a repair of a partition, checks that this changes nothing, repairs it, and returns what Run finds
// then.
func repaired(t *testing.T, q *queue.Queue) (remedies []Remedy, left []Finding) {
	t.Helper()
	found, err := Run(t.Context(), q, 0)
	if err != nil {
		t.Fatal(err)
	}
	before := redistest.Digest(t, q.Client(), q.Root(0))
	plan, err := Repair(t.Context(), q, 0, found, true)
	if err != nil {
		t.Fatal(err)
	}
	if after := redistest.Digest(t, q.Client(), q.Root(0)); after != before {
		t.Errorf("a plan to repair %v changes the namespace", found)
	}
	remedies, err = Repair(t.Context(), q, 0, found, false)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(remedies) != fmt.Sprint(plan) {
		t.Errorf("the plan is\n%v, and the repair\n%v", plan, remedies)
	}
	if left, err = Run(t.Context(), q, 0); err != nil {
		t.Fatal(err)
	}
	return remedies, left
}

// Each finding of an audit is repaired, or is left with advice for the operator.
func TestEachPlantedInconsistencyIsRepaired(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, test := range plants {
			q := furnished(t, rdb)
			do(t, q, test.plant)
			remedies, left := repaired(t, q)
			if len(left) > 0 != test.left {
				t.Errorf("after %q Repair does %v and leaves %v", test.plant, remedies, left)
			}
			said := len(remedies) == 0
			for _, r := range remedies { // one repair can be for two findings
				said = said || r.Left != "" || len(r.Does) > 0
			}
			if !said {
				t.Errorf("after %q Repair does nothing, and does not say why", test.plant)
			}
		}
	})
}
