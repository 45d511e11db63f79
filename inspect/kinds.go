package inspect

import (
	"context"
	"maps"
	"slices"

	"github.com/curfew-dev/curfew/queue"
)

// Kind is a kind of tasks, with the ends of its tasks in each queue, and its defaults.
type Kind struct {
	Kind     string
	Queues   []KindFigures     // by queue; none if no task of the kind was created, or the namespace has no figures
	Defaults map[string]string // in the form of [queue.Queue.Kinds]; empty if there are none
	// Workers is the number of live workers that reported a handler for the kind, in any queue.
	Workers int
}

// Kinds returns, sorted by name, the kinds of which a task was created, and those with defaults or a
// live worker with a handler. It reads the same data as [Figures], [queue.Queue.Kinds] and
// [Workers], so its cost depends on the number of kinds, queues and workers, but not on the number
// of tasks. The kind [OtherKinds] stands for all kinds after the first 1,000 of a partition.
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
	byName := map[string]*Kind{}
	kind := func(name string) *Kind {
		if byName[name] == nil {
			byName[name] = &Kind{Kind: name}
		}
		return byName[name]
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
	list := make([]Kind, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, *byName[name])
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
