package inspect

import (
	"context"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Finding is a place where a namespace contradicts itself.
type Finding = audit.Finding

// Audit reads a whole namespace and returns the places where its records and indexes disagree.
//
// Tasks may change while Audit reads. It reads a suspicious task again, and reports it only if it is
// wrong twice without a change in between. The number of waiting agents is compared only for queues
// that did not change during the whole audit.
//
// No command keeps Redis busy for more than a few milliseconds. Audit reads about 25,000 tasks per
// second and needs about 200 bytes of memory per task.
func Audit(ctx context.Context, q *queue.Queue) ([]Finding, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("audit", "", err)
	}
	var findings []Finding
	for p := range q.Partitions() {
		if err := q.Engine().CheckVersion(ctx, p); err != nil {
			return nil, refusal.Failed("audit", "", err)
		}
		page, err := audit.Run(ctx, q, p)
		if err != nil {
			return nil, refusal.Failed("audit", "", q.Engine().Unread(ctx, p, err))
		}
		findings = append(findings, page...)
	}
	return findings, nil
}
