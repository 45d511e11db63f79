package inspect

import (
	"context"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Remedy is what Repair does about a finding.
type Remedy = audit.Remedy

// PlanRepair returns what Repair would do about findings of [Audit], and changes nothing. There is a Remedy for each
// finding, in the same order.
func PlanRepair(ctx context.Context, q *queue.Queue, found []Finding) ([]Remedy, error) {
	return remedies(ctx, q, found, true)
}

// Repair makes indexes, claims, idempotency keys and counters agree with the records of tasks again. found is what
// [Audit] has returned. Programs may run meanwhile: each place is checked again, in the call that changes it. If a record
// and an index disagree, the record is right.
//
// No task ends in a repair: one that is overdue is back on its clock, and a reaper ends it. A task that lost its place
// in line gets one at its end, and a task that runs is back among the claims of its worker. An agent whose wait is
// damaged is given back as if its worker had released it: it replays its journal and comes to its wait again. An ended
// task that nothing removed is kept for its whole retention from now on, and an idempotency key whose end is lost for a
// day.
//
// What follows from no record is left, such as a record that is lost. The Remedy says what an operator can do. Audit
// again after a repair: a place that changed in the meantime is left to the next one.
//
// Repair needs the rights of [queue.AccessAll]. A call repairs up to 100 places in a few milliseconds. After an error
// some places can be repaired and others not: audit and repair again.
func Repair(ctx context.Context, q *queue.Queue, found []Finding) ([]Remedy, error) {
	return remedies(ctx, q, found, false)
}

func remedies(ctx context.Context, q *queue.Queue, found []Finding, dry bool) ([]Remedy, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("repair", "", err)
	}
	of := make([][]Finding, q.Partitions())
	places := make([][]int, q.Partitions())
	for i, f := range found {
		if err := q.Engine().CheckPartition(f.Partition); err != nil {
			return nil, refusal.Failed("repair", "", err)
		}
		of[f.Partition], places[f.Partition] = append(of[f.Partition], f), append(places[f.Partition], i)
	}
	all := make([]Remedy, len(found))
	for p := range of {
		if len(of[p]) == 0 {
			continue
		}
		some, err := audit.Repair(ctx, q, p, of[p], dry)
		if err != nil {
			return nil, refusal.Failed("repair", "", err)
		}
		for i, r := range some {
			all[places[p][i]] = r
		}
	}
	return all, nil
}
