package inspect

import (
	"context"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Finding is a place where a namespace contradicts itself.
type Finding = audit.Finding

// Audit reads a whole namespace and tells where its records and indexes disagree. Tasks may
// change while it reads: what seems wrong is read again, and is told if it is wrong twice while
// the task rests. How many agents wait is compared only of queues that have rested all the time.
//
// No command takes Redis more than a few milliseconds. Audit reads about 25,000 tasks a second, and keeps
// about 200 bytes of each in memory.
func Audit(ctx context.Context, q *queue.Queue) ([]Finding, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("audit", "", err)
	}
	var findings []Finding
	for p := range q.Partitions() {
		found, err := audit.Run(ctx, q, p)
		if err != nil {
			return nil, refusal.Failed("audit", "", q.Engine().Unread(ctx, p, err))
		}
		findings = append(findings, found...)
	}
	return findings, nil
}
