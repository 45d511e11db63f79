package facade

import (
	"context"
	"errors"
	"fmt"
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

// The functions and package duration accept the same texts as a duration, and take each for the same time, if no number
// has more than 15 digits before or behind its point. Pieces of durations are put together at random.
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
		if text == "" || long.MatchString(text) {
			return
		}
		inGo, err := duration.Parse(text)
		got, refused := delayOf(t.Context(), rdb, q.Root(0), text)
		switch {
		case err == nil && inGo < 0:
			rt.Fatalf("%q is negative in Go", text)
		case err == nil && refused != nil:
			rt.Fatalf("%q is %v in Go, and the function refuses it: %v", text, inGo, refused)
		case err != nil && refused == nil:
			rt.Fatalf("%q is %d ms for the function, and Go refuses it: %v", text, got, err)
		case err == nil && inGo.Milliseconds() != got:
			rt.Fatalf("%q is %d ms in Go, and %d ms for the function", text, inGo.Milliseconds(), got)
		case err == nil:
			accepted++
		}
	})
	if accepted == 0 {
		t.Error("no text was accepted")
	}
}

// long matches a number that a number of Lua, or a float64 of Go, does not hold exactly.
var long = regexp.MustCompile(`(^|[^.\d])0*[1-9]\d{15}|\.\d{16}`)

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
