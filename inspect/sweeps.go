package inspect

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Sweep describes the work of the reapers in a partition.
type Sweep struct {
	Partition int
	// SweptAt is the last sweep of the partition by a reaper with the turn. It is zero if no reaper
	// has swept it since it was created, or if an older version did.
	SweptAt time.Time
	// TurnOf is the id of the reaper with the turn, "" if no reaper has taken it yet. If that reaper
	// does not sweep again before TurnUntil, any other reaper can take the turn.
	TurnOf    string
	TurnUntil time.Time
}

// Sweeps returns the last sweep and the turn of each partition. It reads one key in each partition.
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
	sweeps := make([]Sweep, q.Partitions())
	for p, reply := range reads {
		f, err := reply.Result()
		if err != nil {
			return nil, refusal.Failed("sweeps", "", q.Engine().Unread(ctx, p, err))
		}
		sweeps[p] = Sweep{p, engine.Instant(f[0]), engine.Text(f[1]), engine.Instant(f[2])}
	}
	return sweeps, nil
}
