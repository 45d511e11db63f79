package queue

import (
	"context"

	"github.com/curfew-dev/curfew/refusal"
)

// Audit reads a whole namespace, with SCAN and in batches, and tells where its
// records and indexes disagree. On a namespace that is being worked on it may tell
// of what changed while it read: ask again about what it found.
func (q *Queue) Audit(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	for p := range q.Partitions() {
		s, err := readSnapshot(ctx, q, p)
		if err != nil {
			return nil, refusal.Failed("audit", "", err)
		}
		findings = append(findings, s.check(p)...)
	}
	return findings, nil
}
