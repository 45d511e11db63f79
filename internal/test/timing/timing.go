// Package timing has the tests that need real time: how late an event is detected, and how long a call keeps Redis busy.
// They run after all other packages, with nothing else beside them.
//
// Such a test must not fail because the machine is slow or busy. So a measured time is compared with another one from the
// same moment:
//
//   - Keep measures a lag. Meanwhile a pulse waits for a timer of 1 ms and sends a PING, again and again, and records how late
//     it was. A lag counts as a failure only if the pulse shows that the machine did not cause it.
//   - Compare measures work. It measures a reference directly before and after, and compares the ratio.
//
// A sample within the limit decides, because a busy machine only makes a test slower. Otherwise the test is repeated. If no
// sample decides, the test is skipped with a text that begins with "undecided: ". On a machine that was quiet meanwhile, this is
// a failure.
//
// With CURFEW_PLANT=1, a test that has passed runs again with a fault of its own, for example without the message that it
// measures. It fails if it does not find the fault. With any other value of CURFEW_PLANT, such as the hash of a tree, the value draws
// the tests that do so, one in three.
package timing

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Keep checks that the lag that sample returns is at most within. addr is the server that the pulse sends its PINGs to. With
// planted, sample plants the fault that the test must find, which should make the lag at least ten times as long.
func Keep(t *testing.T, addr string, within time.Duration, sample func(planted bool) time.Duration) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer rdb.Close()
	run(t, func(planted bool) (verdict, string) {
		pulse := begin(rdb)
		lag := sample(planted)
		p := pulse.end()
		return ofLag(lag, within, p.longest), fmt.Sprintf("%v, want %v at most; the pulse was late by up to %v", lag, within, p.longest)
	})
}

// Compare checks that sample returns at most that many times the duration that reference returns. Both must measure the same
// resource, such as the CPU time of a server: see Work. With planted, sample plants the fault that the test must
// find.
func Compare(t *testing.T, most float64, reference func() time.Duration, sample func(planted bool) time.Duration) {
	t.Helper()
	run(t, func(planted bool) (verdict, string) {
		before := reference()
		took := sample(planted)
		after := reference()
		return ofWork(took, most, before, after), fmt.Sprintf("%v, %.2f times the reference, want %.4g times at most; the reference took %v before and %v after",
			took, float64(took)/float64(max(before, after)), most, before, after)
	})
}

// verdict is what one sample shows.
type verdict int

const (
	unclear verdict = iota // the machine may have caused it
	kept
	broken
)

// handoffs is more than how often, one after the other, the work of a sample waits to be scheduled.
const handoffs = 16

// ofLag judges a lag. longest is how late the pulse was.
func ofLag(lag, within, longest time.Duration) verdict {
	switch {
	case lag <= within:
		return kept
	case longest < within/4, lag-within > handoffs*longest:
		return broken
	}
	return unclear
}

// ofWork judges a ratio. The more the two references differ, the more the machine may have slowed down the work between them.
func ofWork(took time.Duration, most float64, before, after time.Duration) verdict {
	fast, slow := float64(min(before, after)), float64(max(before, after))
	switch {
	case fast <= 0:
		return unclear // the clock did not advance
	case float64(took) <= most*fast:
		return kept
	case float64(took) > most*slow*(slow/fast):
		return broken
	}
	return unclear
}

// repeat takes samples while another allows one more. It returns once when a sample shows that, thrice when three in a row show
// that, and otherwise unclear. One or two can have a cause that others do not have, such as a collection of garbage in Lua.
func repeat(once, thrice verdict, another func(taken int) bool, sample func() verdict) verdict {
	row := 0
	for taken := 0; another(taken); taken++ {
		v := sample()
		if v != thrice {
			row = 0
		} else {
			row++
		}
		if v == once || row == 3 {
			return v
		}
	}
	return unclear
}

const (
	leastSamples = 4
	// patience is how long a test goes on after leastSamples.
	patience = 12 * time.Second
	// calm is the largest part of the time that the pulse loses on a quiet machine. Beside four busy loops on two cores
	// it loses about a fifth.
	calm = 0.05
)

// budget returns the function another for repeat.
func budget() func(taken int) bool {
	start := time.Now()
	return func(taken int) bool { return taken < leastSamples || time.Since(start) < patience }
}

// plants reports whether a test plants its fault: all do if CURFEW_PLANT is 1, and of other values each draws one test in three.
func plants(test, value string) bool {
	if value == "" || value == "1" {
		return value != ""
	}
	hash := fnv.New32a()
	io.WriteString(hash, value+test)
	return hash.Sum32()%3 == 0
}

// run takes samples, and passes, fails or skips the test.
func run(t *testing.T, sample func(planted bool) (verdict, string)) {
	t.Helper()
	var last string
	try := func(planted bool) func() verdict {
		return func() (v verdict) {
			t.Helper()
			v, last = sample(planted)
			t.Logf("%s%s", map[bool]string{true: "planted: "}[planted], last)
			return v
		}
	}
	watch := begin(nil)
	failed, text := conclude(plants(t.Name(), os.Getenv("CURFEW_PLANT")), budget, try)
	finish(t, failed, text, last, watch.end())
}

// finish passes, fails or skips a test. watched is the pulse of the whole test.
func finish(tb testing.TB, failed bool, text, last string, watched pulse) {
	tb.Helper()
	tb.Logf("the machine lost %.1f %% of the time", 100*watched.share())
	switch {
	case text == "":
	case failed:
		tb.Errorf("%s: %s", text, last)
	case watched.share() <= calm:
		tb.Errorf("%s, although the machine was quiet: %s", text, last)
	default:
		tb.Skipf("undecided: %s: %s", text, last)
	}
}

// conclude repeats samples, and with plant those with the fault. It returns why the test did not pass, and whether it failed.
// If it did not fail, it is undecided.
func conclude(plant bool, budget func() func(int) bool, try func(planted bool) func() verdict) (failed bool, text string) {
	switch repeat(kept, broken, budget(), try(false)) {
	case broken:
		return true, "it takes too long"
	case unclear:
		return false, "the machine is too busy to tell whether it takes too long"
	}
	if !plant {
		return false, ""
	}
	switch repeat(broken, kept, budget(), try(true)) {
	case kept:
		return true, "the planted delay was not found"
	case unclear:
		return false, "the machine is too busy to tell whether the planted delay is found"
	}
	return false, ""
}
