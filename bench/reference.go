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
	referenceLoops = 50 // a call
)

// reference measures one loop of the reference script, now and on this server, in CPU time
// and as its part of the median call. What a call costs by it holds on another machine, or
// on this one on a slow day.
func (w *stopwatch) reference(ctx context.Context) (use, error) {
	payload := strings.Repeat("x", 100)
	u, err := w.time(ctx, func() error {
		for range referenceCalls {
			if err := referenceScript.Run(ctx, w.rdb, []string{"reference"}, payload, referenceLoops).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return use{
		cpu:    u.cpu / (referenceCalls * referenceLoops),
		script: u.script / (referenceCalls * referenceLoops),
		median: u.median / referenceLoops,
	}, err
}
