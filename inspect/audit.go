package inspect

import (
	"context"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Finding is a place where a namespace contradicts itself.
type Finding = audit.Finding

// Audit reads a whole namespace, with SCAN and in batches, and tells where its
// records and indexes disagree. On a namespace that is being worked on it may tell
// of what changed while it read: ask again about what it found.
func Audit(ctx context.Context, q *queue.Queue) ([]Finding, error) {
	var findings []Finding
	for p := range q.Partitions() {
		s, err := audit.Read(ctx, q, p)
		if err != nil {
			return nil, refusal.Failed("audit", "", err)
		}
		findings = append(findings, s.Check(p)...)
	}
	return findings, nil
}
