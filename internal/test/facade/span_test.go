package facade

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// The functions accept the texts that package duration accepts, and take each for the same time, if every number is a whole number
// of ms in their units. Pieces of durations are put together at random.
func TestDurationsMeanTheSameInGo(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	rdb := redistest.Shared(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"30s", "1.5h", "2m", "500ms", "1d", ".25h", "1000us"}),
		rapid.SampledFrom([]string{"0", "1", "30", "1.5", ".5", "5.", ".", "00", "999999999999999", "106751", "106752", "9223372036854", "0.001", "0.0005"}),
		rapid.SampledFrom([]string{"ns", "us", "µs", "μs", "ms", "s", "m", "h", "d", "w", "S", "H", "min", " ", "-", "+", "e3", "\x00", "ß"}),
	)
	accepted := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(rt, "pieces"), "")
		if text == "" {
			return
		}
		inGo, err := duration.Parse(text)
		got, refused := delayOf(t.Context(), rdb, q.Root(0), text)
		switch {
		case err == nil && inGo < 0:
			rt.Fatalf("%q is negative in Go", text)
		case err == nil && refused != nil && inMS(text):
			rt.Fatalf("%q is %v in Go, and the function refuses it: %v", text, inGo, refused)
		case err == nil && refused == nil && !inMS(text):
			rt.Fatalf("%q is %d ms for the function, which has no such unit or number", text, got)
		case err != nil && refused == nil:
			rt.Fatalf("%q is %d ms for the function, and Go refuses it: %v", text, got, err)
		case refused == nil && inGo.Milliseconds() != got:
			rt.Fatalf("%q is %d ms in Go, and %d ms for the function", text, inGo.Milliseconds(), got)
		case refused == nil:
			accepted++
		}
	})
	if accepted == 0 {
		t.Error("no text was accepted")
	}
}

var (
	component = regexp.MustCompile(`([\d.]+)([^\d.]+)`)
	fine      = regexp.MustCompile(`\.\d{9}`)
	units     = map[string]int64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
)

// inMS reports whether each number of a duration has a unit of the functions, at most 8 digits behind its point, and is a whole
// number of ms. The functions refuse other durations of Go.
func inMS(text string) bool {
	for _, c := range component.FindAllStringSubmatch(text, -1) {
		n, ok := new(big.Rat).SetString(c[1])
		if !ok || units[c[2]] == 0 || !n.Mul(n, big.NewRat(units[c[2]], 1)).IsInt() {
			return false
		}
	}
	return !fine.MatchString(text)
}

// delayOf returns the ms that a function takes a text for. It enqueues a task with this retention.
func delayOf(ctx context.Context, rdb *redis.Client, root, text string) (ms int64, err error) {
	id, err := rdb.FCall(ctx, "curfew_enqueue", []string{root}, "k", "retention", text).Text()
	if err != nil {
		return 0, err
	}
	reply, err := rdb.FCallRO(ctx, "curfew_get", []string{root}, id).Result()
	if err != nil {
		return 0, err
	}
	value, there := named(reply)["retention_ms"]
	if !there {
		return 0, errors.New("the task has no retention")
	}
	_, err = fmt.Sscan(fmt.Sprint(value), &ms)
	return ms, err
}
