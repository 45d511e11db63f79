package bench

import (
	"strconv"
	"strings"
	"testing"
)

// usual returns a report in which every time is equal to its limit.
func usual(t *testing.T) Report {
	t.Helper()
	var r Report
	for line := range strings.Lines(timeLimits) {
		name, limit, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(limit, 64)
		if err != nil {
			t.Fatalf("%q has no number", line)
		}
		r.add(name, value, "loops of the reference script")
	}
	if len(r.Figures) < 10 {
		t.Fatalf("micro.limits has %d limits, want at least 10", len(r.Figures))
	}
	return r
}

func TestGateFailsWhenACallTakesHalfAsLongAgain(t *testing.T) {
	for i, f := range usual(t).Figures {
		for _, row := range []struct {
			times float64
			fails bool
		}{{0.5, false}, {1, false}, {1.2, false}, {1.5, true}} {
			r := usual(t)
			r.Figures[i].Value *= row.times
			broken := GateTimes(r)
			if row.fails != (len(broken) == 1) || !row.fails && len(broken) > 0 {
				t.Errorf("%s at %v times its limit: GateTimes = %q", f.Name, row.times, broken)
			}
			if row.fails && len(broken) == 1 && !strings.HasPrefix(broken[0], f.Name+": ") {
				t.Errorf("%s is above its limit: GateTimes = %q", f.Name, broken)
			}
		}
	}
}

func TestGateOfTimesNamesWhatIsUnknown(t *testing.T) {
	var r Report
	r.add("fetch 1: CPU", 1, "")
	for _, row := range []struct {
		claim, limits string
		broken        int
	}{
		{"all times are within their limits", "# fetch 1: CPU = 0.1\nfetch 1: CPU = 1\n", 0},
		{"no such figure", "fetch 2: CPU = 1\n", 1},
		{"no number", "fetch 1: CPU = one\n", 1},
	} {
		if got := r.gate("micro.limits", row.limits, " = ", timeTolerance); len(got) != row.broken {
			t.Errorf("%s: GateTimes = %q", row.claim, got)
		}
	}
}

// Every call that Micro measures has a limit for one of its times.
func TestEveryCallHasALimit(t *testing.T) {
	for _, name := range strings.Split(allCalls, ", ") {
		_, cpu := usual(t).find(name + ": CPU")
		_, median := usual(t).find(name + ": median")
		if cpu == median {
			t.Errorf("micro.limits must have one limit for %q, of CPU or median", name)
		}
	}
}

func TestLowestKeepsTheLowerOfEach(t *testing.T) {
	a := Report{Figures: []Figure{{"x", 1, ""}, {"y", 5, ""}}}
	b := Report{Figures: []Figure{{"x", 2, ""}, {"y", 4, ""}, {"z", 3, ""}}}
	got := lowest(a, b)
	if got.Value("x") != 1 || got.Value("y") != 4 || got.Value("z") != 3 {
		t.Errorf("lowest = %v, want x 1, y 4 and z 3", got)
	}
}

func TestTimesAreNamedByTheCall(t *testing.T) {
	r := timed().times()
	if r.Value("enqueue 50: CPU") != 3 || r.Value("enqueue 50: median") != 1.5 {
		t.Errorf("times = %v, want a CPU of 3 and a median of 1.5", r)
	}
}
