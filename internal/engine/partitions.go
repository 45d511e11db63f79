package engine

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// together is how many partitions have their commands in one round trip.
const together = 100

// Pipelined calls ask to add commands for each partition, and sends those of 100 partitions in a round trip. Each command has
// its own error, so ask must keep it.
func (e *Engine) Pipelined(ctx context.Context, ask func(pipe redis.Pipeliner, partition int)) {
	for from := 0; from < e.partitions; from += together {
		Pipelined(ctx, e.rdb, func(pipe redis.Pipeliner) {
			for p := from; p < min(from+together, e.partitions); p++ {
				ask(pipe, p)
			}
		})
	}
}

// Pipelined sends the commands that ask adds in a round trip. Each command has its own error, so ask must keep it. If Redis refuses
// the connection, for example because of a wrong password, go-redis leaves the commands without an error and without a reply.
// Pipelined gives them that error.
func Pipelined(ctx context.Context, rdb Pipeliner, ask func(pipe redis.Pipeliner)) {
	cmds, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { ask(pipe); return nil })
	if err == nil || slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		return
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// Pipeliner is a client that can send several commands in a round trip.
type Pipeliner interface {
	Pipelined(ctx context.Context, ask func(redis.Pipeliner) error) ([]redis.Cmder, error)
}
