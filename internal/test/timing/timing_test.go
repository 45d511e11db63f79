package timing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestALagIsJudgedByThePulse(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		claim                string
		lag, within, longest time.Duration
		want                 verdict
	}{
		{"within the limit on a quiet machine", 100 * ms, 100 * ms, 1 * ms, kept},
		{"within the limit on a busy machine", 100 * ms, 100 * ms, time.Second, kept},
		{"beyond it on a quiet machine", 101 * ms, 100 * ms, 24 * ms, broken},
		{"beyond it on a busy machine", 200 * ms, 100 * ms, 25 * ms, unclear},
		{"farther beyond it than the machine explains", 501 * ms, 100 * ms, 25 * ms, broken},
		{"the machine stood still", 3 * time.Second, 100 * ms, time.Second, unclear},
	} {
		if got := ofLag(test.lag, test.within, test.longest); got != test.want {
			t.Errorf("%s: %v, want %v", test.claim, got, test.want)
		}
	}
}

func TestWorkIsJudgedByTheReferences(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		claim               string
		took, before, after time.Duration // three times the reference are allowed
		want                verdict
	}{
		{"within the limit", 30 * ms, 10 * ms, 10 * ms, kept},
		{"within the limit on a slow machine", 300 * ms, 100 * ms, 100 * ms, kept},
		{"beyond it", 31 * ms, 10 * ms, 10 * ms, broken},
		{"beyond the faster reference only", 31 * ms, 10 * ms, 11 * ms, unclear},
		{"beyond both, which differ", 41 * ms, 10 * ms, 13 * ms, unclear},
		{"beyond the slower by more than they differ", 61 * ms, 10 * ms, 14 * ms, broken},
		{"the slower is the first", 61 * ms, 14 * ms, 10 * ms, broken},
		{"a clock that stands still", 31 * ms, 0, 10 * ms, unclear},
	} {
		if got := ofWork(test.took, 3, test.before, test.after); got != test.want {
			t.Errorf("%s: %v, want %v", test.claim, got, test.want)
		}
	}
}

// A test passes, fails or is undecided after as many samples as that takes.
func TestSamplesAreRepeated(t *testing.T) {
	const five = 5 // samples at most, without a fault and with one
	for _, test := range []struct {
		claim           string
		samples         string // k for kept, b for broken, u for unclear
		planted         string // the same with the fault; "" without CURFEW_PLANT
		failed          bool
		text            string // the beginning of the reason
		unused, unasked int    // samples that are left
	}{
		{"the first sample decides", "kb", "", false, "", 1, 0},
		{"two late samples do not", "bbk", "", false, "", 0, 0},
		{"three do", "bbbk", "", true, "it takes too long", 1, 0},
		{"three that are not in a row do not", "bbubk", "", false, "", 0, 0},
		{"a busy machine is given time", "uuuuk", "", false, "", 0, 0},
		{"but not forever", "uuuuuk", "", false, "the machine is too busy to tell whether it takes too long", 1, 0},
		{"a planted fault is found", "k", "bk", false, "", 0, 1},
		{"a planted fault is found later", "k", "kuub", false, "", 0, 0},
		{"a planted fault is not found", "k", "kkkb", true, "the planted delay was not found", 0, 1},
		{"a busy machine hides a planted fault", "k", "uuuuub", false, "the machine is too busy to tell whether the planted", 0, 1},
		{"nothing is planted after a failure", "bbb", "b", true, "it takes too long", 0, 1},
		{"nothing is planted if undecided", "uuuuu", "b", false, "the machine is too busy to tell whether it takes", 0, 1},
	} {
		left := map[bool]string{false: test.samples, true: test.planted}
		verdicts := map[byte]verdict{'k': kept, 'b': broken, 'u': unclear}
		failed, text := conclude(test.planted != "", func() func(int) bool { return func(taken int) bool { return taken < five } },
			func(planted bool) func() verdict {
				return func() verdict {
					next := left[planted][0]
					left[planted] = left[planted][1:]
					return verdicts[next]
				}
			})
		if failed != test.failed || !strings.HasPrefix(text, test.text) || (text == "") != (test.text == "") {
			t.Errorf("%s: failed %v, %q, want %v, %q", test.claim, failed, text, test.failed, test.text)
		}
		if len(left[false]) != test.unused || len(left[true]) != test.unasked {
			t.Errorf("%s: %q and %q are left, want %d and %d samples", test.claim, left[false], left[true], test.unused, test.unasked)
		}
	}
}

// end is how a test of tests ended.
type end struct {
	failed, skipped bool
	text            string
}

// recorder is a test that records how it ends.
type recorder struct {
	testing.TB
	end
}

func (r *recorder) Helper()                   {}
func (r *recorder) Logf(string, ...any)       {}
func (r *recorder) Errorf(f string, a ...any) { r.failed, r.text = true, f }
func (r *recorder) Skipf(f string, a ...any)  { r.skipped, r.text = true, f }

// A test that is undecided is skipped if the pulse lost time, and fails if it did not.
func TestUndecidedIsRedOnAQuietMachine(t *testing.T) {
	for _, test := range []struct {
		claim  string
		text   string
		failed bool
		lost   time.Duration // of a second
		want   end
	}{
		{claim: "passed", lost: 0},
		{claim: "passed on a busy machine", lost: 500 * time.Millisecond},
		{claim: "failed", text: "why", failed: true, lost: 500 * time.Millisecond, want: end{failed: true, text: "%s: %s"}},
		{claim: "undecided on a busy machine", text: "why", lost: 60 * time.Millisecond, want: end{skipped: true, text: "undecided: %s: %s"}},
		{claim: "undecided on a quiet machine", text: "why", lost: 40 * time.Millisecond, want: end{failed: true, text: "%s, although the machine was quiet: %s"}},
	} {
		r := recorder{TB: t}
		finish(&r, test.failed, test.text, "the last sample", pulse{lost: test.lost, elapsed: time.Second})
		if r.end != test.want {
			t.Errorf("%s: %+v, want %+v", test.claim, r.end, test.want)
		}
	}
}

// The pulse is late by as much as the server is, and not because the server is down.
func TestThePulseIsLateWithItsServer(t *testing.T) {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr, MaxRetries: -1})
	defer rdb.Close()
	const hold = 200 * time.Millisecond
	held := proxy.Hold(faultproxy.Command("ping"))
	start := make(chan running)
	go func() { start <- begin(rdb) }()
	held.Await(t) // the first PING is only to connect
	proxy.Release()
	p := <-start
	held = proxy.Hold(faultproxy.Command("ping"))
	held.Await(t)
	<-time.After(hold)
	proxy.Release()
	if got := p.end(); got.longest < hold || got.lost < hold-2*tick || got.share() <= 0 || got.share() > 1 {
		t.Errorf("with a reply that was held for %v, the pulse is %+v", hold, got)
	}

	p = begin(rdb)
	server.Kill()
	<-time.After(20 * tick)
	if got := p.end(); got.elapsed < 20*tick {
		t.Errorf("without a server, the pulse is %+v", got)
	}
}

// Work measures the CPU time of the server, and not how long a client waits.
func TestCompareIgnoresAPauseAndFindsWork(t *testing.T) {
	t.Setenv("CURFEW_PLANT", "1")
	rdb := redistest.Start(t).Client(t)
	Compare(t, 1.5, Work(t, rdb), func(planted bool) time.Duration {
		return CPU(t, rdb, func() {
			rdb.Wait(t.Context(), 1, 50*time.Millisecond) // there is no replica
			for range map[bool]int{false: 1, true: 5}[planted] {
				if err := work.Run(t.Context(), rdb, []string{"reference"}, "payload").Err(); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
}

// A value of CURFEW_PLANT draws about a third of the tests, another value others.
func TestAValueDrawsPlants(t *testing.T) {
	count := map[string]int{}
	for i := range 300 {
		for _, value := range []string{"", "1", "a tree", "another tree"} {
			if plants(fmt.Sprint("Test", i), value) {
				count[value]++
			}
		}
		if plants(fmt.Sprint("Test", i), "a tree") && plants(fmt.Sprint("Test", i), "another tree") {
			count["both"]++
		}
	}
	if count[""] != 0 || count["1"] != 300 || count["a tree"] < 70 || count["a tree"] > 130 || count["both"] > 60 {
		t.Errorf("of 300 tests, so many plant their fault: %v", count)
	}
}

// Keep finds a pause that is planted.
func TestKeepFindsAPause(t *testing.T) {
	t.Setenv("CURFEW_PLANT", "1")
	server := redistest.Start(t)
	Keep(t, server.Addr, 100*time.Millisecond, func(planted bool) time.Duration {
		start := time.Now()
		<-time.After(map[bool]time.Duration{false: 10, true: 1500}[planted] * time.Millisecond)
		return time.Since(start)
	})
}
