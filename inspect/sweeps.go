package inspect

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Sweep says when the reapers of a partition work.
type Sweep struct {
	Partition int
	// SweptAt is when the reaper with the turn last swept the partition. It is zero if no reaper has swept it
	// since it was created, or if an older version did.
	SweptAt time.Time
	// TurnOf is the id of the reaper with the turn, "" if no reaper has taken it yet. The turn ends at
	// TurnUntil unless that reaper sweeps again before; then any other reaper can take it.
	TurnOf    string
	TurnUntil time.Time
}

// Sweeps returns when each partition was last swept, and by whom. It reads one key in each partition.
func Sweeps(ctx context.Context, q *queue.Queue) ([]Sweep, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("sweeps", "", err)
	}
	if err := q.Engine().CheckVersions(ctx); err != nil {
		return nil, refusal.Failed("sweeps", "", err)
	}
	reads := make([]*redis.SliceCmd, q.Partitions())
	engine.Pipelined(ctx, q.Engine().Client(), func(pipe redis.Pipeliner) {
		for p := range q.Partitions() {
			reads[p] = pipe.HMGet(ctx, q.Root(p), "swept_at", "turn_of", "turn_until")
		}
	})
	all := make([]Sweep, q.Partitions())
	for p, read := range reads {
		f, err := read.Result()
		if err != nil {
			return nil, refusal.Failed("sweeps", "", q.Engine().Unread(ctx, p, err))
		}
		all[p] = Sweep{p, engine.Instant(f[0]), engine.Text(f[1]), engine.Instant(f[2])}
	}
	return all, nil
}
