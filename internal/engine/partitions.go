package engine

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// together is how many partitions have their commands in one round trip.
const together = 100

// Pipelined calls ask to add commands for each partition, and sends those of 100 partitions in a round trip. Each command has
// its own error, so ask must keep it.
func (e *Engine) Pipelined(ctx context.Context, ask func(pipe redis.Pipeliner, partition int)) {
	for from := 0; from < e.partitions; from += together {
		e.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for p := from; p < min(from+together, e.partitions); p++ {
				ask(pipe, p)
			}
			return nil
		})
	}
}
