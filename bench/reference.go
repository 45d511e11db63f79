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
	referenceLoops = 50 // in each call
)

// reference measures one loop of the reference script on this server, as CPU time and as its
// part of the median call. The cost of a call divided by it is about the same on other machines
// and under other load.
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
