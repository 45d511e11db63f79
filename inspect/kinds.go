package inspect

import (
	"context"
	"maps"
	"slices"

	"github.com/curfew-dev/curfew/queue"
)

// Kind is a kind of tasks: how its tasks ended in each queue, and its defaults.
type Kind struct {
	Kind     string
	Queues   []KindFigures     // by queue; none if no task of the kind was created, or the namespace has no figures
	Defaults map[string]string // as [queue.Queue.Kinds] returns them; empty if it has none
	// Workers is the number of live workers that tell that they have a handler for the kind, whatever queues they serve.
	Workers int
}

// Kinds returns the kinds of which a task was created, or which have defaults or a live worker with a handler, sorted by name. It reads what [Figures],
// [queue.Queue.Kinds] and [Workers] read, so its cost depends on the number of kinds, queues and workers, and not on that of
// tasks. The kind [OtherKinds] counts the kinds after the first 1,000 of a partition together.
func Kinds(ctx context.Context, q *queue.Queue) ([]Kind, error) {
	figures, err := Figures(ctx, q)
	if err != nil {
		return nil, err
	}
	defaults, err := q.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := Workers(ctx, q)
	if err != nil {
		return nil, err
	}
	all := map[string]*Kind{}
	kind := func(name string) *Kind {
		if all[name] == nil {
			all[name] = &Kind{Kind: name}
		}
		return all[name]
	}
	for _, f := range figures {
		kind(f.Kind).Queues = append(kind(f.Kind).Queues, f)
	}
	for name, fields := range defaults {
		kind(name).Defaults = fields
	}
	for _, w := range workers {
		for _, name := range w.Kinds {
			kind(name).Workers++
		}
	}
	list := make([]Kind, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list, nil
}

// Count returns how many tasks of the kind have ended with a status, in all queues.
func (k Kind) Count(status queue.Status) (n int64) {
	for _, f := range k.Queues {
		for _, e := range f.Ends {
			if e.Status == status {
				n += e.Count
			}
		}
	}
	return n
}
