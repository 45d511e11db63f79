package inspect

import (
	"context"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Remedy is the action of Repair for a finding.
type Remedy = audit.Remedy

// PlanRepair returns the Remedy that Repair would apply to each finding of [Audit], in the same
// order. It changes nothing.
func PlanRepair(ctx context.Context, q *queue.Queue, findings []Finding) ([]Remedy, error) {
	return remedies(ctx, q, findings, true)
}

// Repair makes indexes, claims, idempotency keys and counters agree with the records of tasks again.
// findings is the result of [Audit]. Programs may run meanwhile, because the call that changes a
// place checks it again first. If a record and an index disagree, the record is right.
//
// No task ends in a repair: an overdue task is back on its clock, and a reaper ends it. A task that
// lost its place in line gets a place at the end, and a running task is back among the claims of its
// worker. An agent whose wait is damaged is given back as if its worker had released it: it replays
// its journal and comes to its wait again. An ended task that nothing removed is kept for its whole
// retention from now on, and an idempotency key whose end is lost for a day.
//
// Repair leaves what it cannot compute from a record, such as a lost record. Its Remedy has advice
// for an operator. Audit again after a repair, because a place that changed in the meantime is left
// for the next repair.
//
// Repair needs the rights of [queue.AccessAll]. A call repairs up to 100 places in a few
// milliseconds. After an error some places can be repaired and others not: audit and repair again.
func Repair(ctx context.Context, q *queue.Queue, findings []Finding) ([]Remedy, error) {
	return remedies(ctx, q, findings, false)
}

func remedies(ctx context.Context, q *queue.Queue, findings []Finding, dry bool) ([]Remedy, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("repair", "", err)
	}
	byPartition := make([][]Finding, q.Partitions())
	places := make([][]int, q.Partitions())
	for i, f := range findings {
		if err := q.Engine().CheckPartition(f.Partition); err != nil {
			return nil, refusal.Failed("repair", "", err)
		}
		byPartition[f.Partition], places[f.Partition] = append(byPartition[f.Partition], f), append(places[f.Partition], i)
	}
	list := make([]Remedy, len(findings))
	for p := range byPartition {
		if len(byPartition[p]) == 0 {
			continue
		}
		page, err := audit.Repair(ctx, q, p, byPartition[p], dry)
		if err != nil {
			return nil, refusal.Failed("repair", "", err)
		}
		for i, r := range page {
			list[places[p][i]] = r
		}
	}
	return list, nil
}
