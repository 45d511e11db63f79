package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
)

// recount counts the running tasks of some queues again. It reports a counter that is wrong twice
// while the queue does not change.
func (w *walk) recount(ctx context.Context, doubted []string) error {
	first := map[string]Finding{}
	for try := 0; try < looks && len(doubted) > 0; try++ {
		if err := rest(ctx, try); err != nil {
			return err
		}
		before, err := w.tallies(ctx)
		if err != nil {
			return err
		}
		running, err := w.running(ctx, doubted)
		if err != nil {
			return err
		}
		after, err := w.tallies(ctx)
		if err != nil {
			return err
		}
		doubted = slices.DeleteFunc(doubted, func(name string) bool {
			has := after[name]["running"]
			if !maps.Equal(before[name], after[name]) {
				return false
			}
			if engine.Number(has) == running[name] {
				return true
			}
			finding := Finding{w.partition, name, fmt.Sprintf("has counted %s running tasks, and there are %d", has, running[name]), cure{what: "running"}}
			if first[name] == finding {
				w.findings = append(w.findings, finding)
				return true
			}
			first[name] = finding
			return false
		})
	}
	return nil
}

// running counts the running tasks of each queue. It reads the tasks that workers hold, and
// those that were running when the walk read them.
func (w *walk) running(ctx context.Context, queues []string) (map[string]int64, error) {
	ids := map[string]bool{}
	for id, t := range w.tasks {
		if t.running && slices.Contains(queues, w.words[t.queue]) {
			ids[id] = true
		}
	}
	workers := slices.Clone(w.named["claims:"])
	err := w.eachMember(ctx, "workers", func(members map[string]float64) error {
		workers = slices.AppendSeq(workers, maps.Keys(members))
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(workers)
	for _, worker := range slices.Compact(workers) {
		err := w.eachMember(ctx, "claims:"+worker, func(members map[string]float64) error {
			for id := range members {
				ids[id] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	n := map[string]int64{}
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(ids)), together) {
		s := newSnapshot()
		if err := w.readTasks(ctx, s, chunk); err != nil {
			return nil, err
		}
		for _, t := range s.Tasks {
			if t["status"] == string(queue.Running) {
				n[t["queue"]]++
			}
		}
	}
	return n, nil
}
