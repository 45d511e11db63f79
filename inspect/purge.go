package inspect

import (
	"context"
	"errors"
	"slices"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Purged counts what [Purge] did to the records that matched.
type Purged struct {
	Removed int64 // are removed
	Later   int64 // will be removed by a reaper, a minute after the end of their task
	Kept    int64 // are still needed (refusal.ErrNeeded), or cannot be read
}

// Purge removes the records of all ended tasks that match a filter, before their retention is over. It lists them as
// [Each] does, and removes them as [queue.Queue.DeleteAll] does, up to 500 in a call and one call at a time. Unlike the other functions
// of this package it changes the namespace. Its user needs the rights of a producer and of a reader.
//
// Filter.Statuses defaults to all final statuses. Purge returns [refusal.ErrInvalid] if one of them is not final. With
// Filter.Before it removes only the records of tasks that ended before that time. Tasks that [ListPage].Unlisted
// names are not removed.
//
// If Purge fails or ctx ends, Purged counts what was done until then. Call Purge again for the rest.
func Purge(ctx context.Context, q *queue.Queue, f Filter) (Purged, error) {
	var sum Purged
	if err := q.Ready(ctx); err != nil {
		return sum, refusal.Failed("purge", "", err)
	}
	if len(f.Statuses) == 0 {
		f.Statuses = []queue.Status{queue.Completed, queue.Failed, queue.Cancelled}
	}
	if slices.ContainsFunc(f.Statuses, func(s queue.Status) bool { return slices.Contains(statuses, s) && !s.Ended() }) {
		return sum, refusal.Failed("purge", "", refusal.Invalid("status", "must be COMPLETED, FAILED or CANCELLED: a task that has not ended keeps its record; cancel it first"))
	}
	f.Bodies = false
	err := Each(ctx, q, f, func(page ListPage) error {
		ids := make([]string, len(page.Lines))
		for i, l := range page.Lines {
			ids[i] = l.ID
		}
		all, err := q.DeleteAll(ctx, ids)
		if err != nil {
			return err
		}
		for _, d := range all {
			sum.add(d)
		}
		return nil
	})
	return sum, err
}

func (p *Purged) add(d queue.Deletion) {
	switch {
	case d.Err == nil && d.RemovedAt.IsZero():
		p.Removed++
	case d.Err == nil:
		p.Later++
	case !errors.Is(d.Err, refusal.ErrNotFound): // another program removed that one
		p.Kept++
	}
}
