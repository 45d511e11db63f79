package demo

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
)

// Together runs programs until do returns, then ends their contexts and waits for them. If a program fails before that, the context
// of do ends, and Together returns the error of the program.
func Together(ctx context.Context, do func(context.Context) error, programs ...func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	for _, run := range programs {
		running.Go(func() {
			if err := run(ctx); err != nil {
				stop(err) // the first call counts
			}
		})
	}
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	stop(errEnded)
	running.Wait()
	return err
}

var errEnded = errors.New("the demo has ended")

// wait is the longest time of one call that waits for events.
const wait = time.Minute

// Now returns the cursor behind the newest event.
func Now(ctx context.Context, q *queue.Queue) (events.Cursor, error) {
	batch, err := events.Read(ctx, q, events.Newest, 1, 0)
	return batch.Next, err
}

// Follow calls see with all events behind a cursor, until see returns true or an error, or the context ends.
func Follow(ctx context.Context, q *queue.Queue, at events.Cursor, see func(events.Batch) (enough bool, err error)) error {
	for {
		batch, err := events.Read(ctx, q, at, 1000, wait)
		if err != nil {
			return err
		}
		at = batch.Next
		if len(batch.Events) == 0 && len(batch.Gaps) == 0 {
			continue
		}
		if enough, err := see(batch); enough || err != nil {
			return err
		}
	}
}
