package random

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
)

// outcome is how an attempt of a leaf ends. It depends on nothing but the seed, the place of the leaf in the run, and the attempt: so
// it does not matter which process runs it, and how often it begins.
func outcome(seed uint64, place string, attempt int) (phase string, value float64) {
	h := fnv.New64a()
	fmt.Fprint(h, seed, " ", place, " ", attempt)
	n := h.Sum64()
	switch n % 20 {
	case 0, 1, 2:
		return "Error", 0
	case 3, 4:
		return "Failed", 0
	}
	return "Succeeded", float64(n / 20 % 100)
}

// end is how something ends.
type end struct {
	phase string
	value any // outputs.parameters.v of what has succeeded
}

// evaluator evaluates a definition by itself.
type evaluator struct {
	seed   uint64
	leaves map[string]string // the phase of each leaf that runs, by its place
	unsure bool              // several parts fail at once, in different ways: which one comes first is not known
}

func (e *evaluator) template(t *template, place string, in float64) end {
	switch {
	case t.wrap != nil:
		return e.call(&node{name: "task", calls: t.wrap}, place, "", in)
	case t.loop != nil:
		return e.loop(t.loop, place, in)
	}
	ends, failed := map[string]end{}, ""
	sum := 0.0
	for _, n := range t.dag {
		sumIn, runs := in, true
		for _, before := range n.after {
			got, ran := ends[before.name]
			if runs = runs && ran; ran {
				v, _ := got.value.(float64)
				sumIn += v
			}
		}
		if !runs {
			continue // what it awaits has failed
		}
		got := e.call(n, place, "", sumIn)
		if got.phase != "Succeeded" && !n.excused {
			failed = e.fail(failed, got.phase)
			continue
		}
		ends[n.name] = got
		v, _ := got.value.(float64)
		sum += v
	}
	if failed != "" {
		return e.broken(place, failed)
	}
	return end{"Succeeded", sum}
}

// broken returns the end of a container that has failed. What of it still ran is cancelled, so its leaves can have any phase.
func (e *evaluator) broken(place, phase string) end {
	maps.DeleteFunc(e.leaves, func(leaf, _ string) bool { return strings.HasPrefix(leaf, place+".") })
	return end{phase: phase}
}

// fail returns the phase of a container in which a part has failed that is not excused.
func (e *evaluator) fail(before, phase string) string {
	if phase != "Error" {
		phase = "Failed"
	}
	if before != "" && before != phase {
		e.unsure = true
	}
	return phase
}

func (e *evaluator) loop(l *loop, place string, in float64) end {
	failed := ""
	last := end{phase: "Succeeded"}
	for i := range l.rounds {
		last = e.call(&l.body, place, "__"+strconv.Itoa(i), in+float64(i))
		if last.phase != "Succeeded" && !l.body.excused {
			failed = e.fail(failed, last.phase)
			if l.parallel == 1 || !l.items {
				break
			}
		}
	}
	switch {
	case failed != "":
		return e.broken(place, failed)
	case l.items:
		return end{phase: "Succeeded"} // it yields a list, and no v
	}
	return end{"Succeeded", last.value}
}

// call evaluates all attempts of a call.
func (e *evaluator) call(n *node, place, suffix string, in float64) (got end) {
	place += "." + n.name + suffix
	for attempt := range n.retries + 1 {
		if n.calls == nil {
			got = e.leaf(n, place, attempt, in)
		} else if attempt == 0 {
			got = e.template(n.calls, place, in)
		} else {
			got = e.template(n.calls, place+"__r"+strconv.Itoa(attempt+1), in)
		}
		if got.phase == "Succeeded" || got.phase == "Failed" && !n.always {
			break
		}
	}
	if n.calls == nil {
		e.leaves[place] = got.phase
	}
	return got
}

func (e *evaluator) leaf(n *node, place string, attempt int, in float64) end {
	if n.hangs {
		return end{phase: "Timeout"}
	}
	phase, value := outcome(e.seed, place, attempt)
	if phase != "Succeeded" {
		return end{phase: phase}
	}
	return end{phase, value + in}
}
