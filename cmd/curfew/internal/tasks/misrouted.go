package tasks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// place is the queue that a worker must serve, and the kind that it must handle, to run a task.
type place struct{ queue, kind string }

// misrouted counts the tasks of a list that need a worker.
type misrouted map[place]int64

func (m misrouted) add(l inspect.Line) {
	if l.Status == queue.Pending && l.Fields["role"] == "" {
		m[place{l.Queue, l.Kind}]++
	}
}

// warn names on stderr the tasks that no live worker takes.
func (m misrouted) warn(c *cli.Context, q *queue.Queue) error {
	if len(m) == 0 || c.Bool("quiet") {
		return nil
	}
	workers, err := inspect.Workers(c.Context, q)
	if err != nil {
		return err
	}
	for _, sentence := range m.sentences(workers) {
		app.Note(c, "%s", sentence)
	}
	return nil
}

// sentences returns at most ten sentences.
func (m misrouted) sentences(workers []inspect.Worker) []string {
	crew, counts := inspect.CrewOf(workers), map[string]int64{}
	for at, n := range m {
		reason := cmp.Or(app.Unserved(crew, at.queue), app.Unhandled(crew, at.queue, at.kind))
		if len(workers) == 0 {
			reason = "no worker lives"
		}
		if reason != "" {
			counts[reason] += n
		}
	}
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, sentence := range list {
		list[i] = fmt.Sprintf("%s: %s for one", sentence, app.Plural(counts[sentence], "task waits", "tasks wait"))
	}
	const limit = 10
	if len(list) > limit {
		list = append(list[:limit], fmt.Sprintf("… and %d more such queues and kinds: `curfew doctor` names those with tasks in line", len(list)-limit))
	}
	return list
}
