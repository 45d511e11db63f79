package inspect

import (
	"context"
	"errors"
	"slices"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Purged counts the records that matched, by the effect of [Purge].
type Purged struct {
	Removed int64 // removed
	Later   int64 // to be removed by a reaper, a minute after the end of their task
	Kept    int64 // still needed (refusal.ErrNeeded), or unreadable
}

// Purge removes the records of all ended tasks that match a filter, before their retention is over.
// It lists them as [Each] does, and removes them as [queue.Queue.DeleteAll] does, up to 500 in a
// call and one call at a time. Its user needs the rights of a producer and of a reader, because
// Purge changes the namespace.
//
// Filter.Statuses defaults to all final statuses. If one of them is not final, Purge returns
// [refusal.ErrInvalid]. With Filter.Before it removes only the records of tasks that ended before
// that time. It does not remove the tasks that [ListPage].Unlisted describes.
//
// If Purge fails or ctx ends, Purged counts its effects until then. Call Purge again for the rest.
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
		deletions, err := q.DeleteAll(ctx, ids)
		if err != nil {
			return err
		}
		for _, d := range deletions {
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
	case !errors.Is(d.Err, refusal.ErrNotFound): // with ErrNotFound another program removed the record
		p.Kept++
	}
}
