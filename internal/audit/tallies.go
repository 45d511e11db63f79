package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
)

// modes has the modes of waits. A queue counts its WAITING agents in waiting, and once more in the counter that the
// record of the agent names in counted_as: bounded_MODE or unbounded_MODE.
var modes = []string{"all", "fail_fast", "settled", "any", "any_ok", "n_of_m", "n_settled", "peek", "collect"}

// waitCounters has all counters of waiting agents.
var waitCounters = func() []string {
	names := []string{"waiting"}
	for _, mode := range modes {
		names = append(names, "bounded_"+mode, "unbounded_"+mode)
	}
	return names
}()

// waitTally counts the WAITING agents of a queue, by counter. An agent that an older version has suspended is counted only
// in waiting.
type waitTally map[string]int64

func (w waitTally) add(countedAs string) {
	w["waiting"]++
	if countedAs != "" {
		w[countedAs]++
	}
}

// wrong describes the wrong counters of a queue in words, and returns them with the right numbers, for example
// waiting=2 bounded_all=1. Both are empty if all counters are right.
func (w waitTally) wrong(has map[string]string) (why string, right []string) {
	var differences []string
	for _, name := range waitCounters {
		if engine.Number(has[name]) == w[name] {
			continue
		}
		noun := "waiting tasks"
		if bound, mode, ok := strings.Cut(name, "_"); ok {
			noun = "waiting tasks in mode " + mode + " (" + bound + ")"
		}
		differences = append(differences, fmt.Sprintf("has counted %s %s, and there are %d", has[name], noun, w[name]))
		right = append(right, fmt.Sprintf("%s=%d", name, w[name]))
	}
	return strings.Join(differences, "; "), right
}

// tallyOf returns the counts of a queue, for the caller to add to.
func tallyOf(tallies map[string]waitTally, name string) waitTally {
	if tallies[name] == nil {
		tallies[name] = waitTally{}
	}
	return tallies[name]
}

// tallied has the counters of a queue that change with each task. If none of them has changed, no task of the queue has.
var tallied = []string{"running", "waiting", "enqueued", "completed", "failed", "cancelled"}

// counters has all counters of a queue that an audit reads.
var counters = slices.Concat(tallied, waitCounters[1:])

// unchanged reports whether no task of the queue, or of its partition, has changed between two readings.
func unchanged(before, now map[string]map[string]string, name string) bool {
	return maps.Equal(now[""], before[""]) && maps.Equal(now[name], before[name])
}
