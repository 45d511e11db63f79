package worker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// The message of Redis and the attempt's own timer report the same end, and either can be first. The
// cause of the handler's context is the same in both cases.
func TestTheCauseDoesNotDependOnWhichMessageIsFirst(t *testing.T) {
	now := time.Now()
	soon, later := now.Add(time.Millisecond), now.Add(time.Hour)
	for _, row := range []struct {
		claim              string
		deadline, attempts time.Time
		reason             string // of the message
		want               error
		timer              bool // a local timer can be first
	}{
		{"a deadline", soon, time.Time{}, "timeout", ErrDeadline, true},
		{"a deadline before the attempt limit", soon, later, "timeout", ErrDeadline, true},
		{"both at once", soon, soon, "timeout", ErrDeadline, true},
		{"an attempt limit", time.Time{}, soon, "timeout", ErrAttemptTimeout, true},
		{"an attempt limit before the deadline", later, soon, "timeout", ErrAttemptTimeout, true},
		{"a cancellation", later, later, "cancelled", ErrCancelled, false},
		{"a cancellation with a grace", later, later, "cancelling", ErrCancelled, false},
		{"the end of the owner", later, later, "owner_ended", ErrCancelled, false},
		{"a lost lease", later, later, "lost", ErrClaimLost, false},
		{"shutdown", later, later, "", ErrShutdown, false},
	} {
		t.Run(row.claim, func(t *testing.T) {
			for i := range 1000 {
				w := &Worker{log: slog.New(slog.DiscardHandler)}
				p := newPartition(w, 0)
				root, cancelRoot := context.WithCancelCause(context.Background())
				c := &queue.Claim{ID: "0-x", Epoch: 1, Deadline: row.deadline, AttemptDeadline: row.attempts, Now: now}
				received, timerFirst := time.Now(), row.timer && i%2 == 0
				if !timerFirst {
					received = received.Add(time.Minute) // the local timer is a minute late
				}
				a := newAttempt(root, p, "w", nil, c, received)
				p.held[a.key()] = a
				ctx, end := a.handlerContext()
				if timerFirst {
					<-ctx.Done()
				}
				if row.reason == "" {
					cancelRoot(ErrShutdown)
				} else {
					p.stop(claim.Stop{ID: "0-x", Epoch: 1, Reason: row.reason})
				}
				<-ctx.Done()
				cause := context.Cause(ctx)
				end()
				cancelRoot(nil)
				if !errors.Is(cause, row.want) || errors.Is(row.want, ErrTimeout) && cause != row.want {
					t.Fatalf("the cause is %v, want %v (local timer first: %v)", cause, row.want, timerFirst)
				}
			}
		})
	}
}
