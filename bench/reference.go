package bench

import (
	"context"
	_ "embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed reference.lua
var referenceSource string

var referenceScript = redis.NewScript(referenceSource)

const (
	referenceCalls = 40
	referenceLoops = 50  // in each call
	smallCalls     = 200 // of one loop
)

// unit is the reference that costs are divided by. The ratio is about the same on other machines and
// under other load.
type unit struct {
	loop use     // one loop of the reference script, in a call of many
	call float64 // the median call of one loop
}

// reference measures the reference script on this server. A server that waits for each call begins it
// with cold caches, which costs about as much as a loop or two, on some machines more. So small calls are compared with a
// call of one loop, and not with a loop among many.
func (w *stopwatch) reference(ctx context.Context) (unit, error) {
	many, err := w.referenceCalls(ctx, referenceCalls, referenceLoops)
	if err != nil {
		return unit{}, err
	}
	one, err := w.referenceCalls(ctx, smallCalls, 1)
	return unit{
		loop: use{
			cpu:    many.cpu / (referenceCalls * referenceLoops),
			script: many.script / (referenceCalls * referenceLoops),
			median: many.median / referenceLoops,
		},
		call: one.median,
	}, err
}

func (w *stopwatch) referenceCalls(ctx context.Context, calls, loops int) (use, error) {
	payload := strings.Repeat("x", 100)
	return w.time(ctx, func() error {
		for range calls {
			if err := referenceScript.Run(ctx, w.rdb, []string{"reference"}, payload, loops).Err(); err != nil {
				return err
			}
		}
		return nil
	})
}
