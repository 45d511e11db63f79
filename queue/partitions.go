package queue

import (
	"sync"

	"github.com/curfew-dev/curfew/internal/names"
)

// maxList is the greatest number of tasks in a call.
const maxList = 500

// byPartition returns the indexes of the ids in the list, by partition.
func (q *Queue) byPartition(list []string) (map[int][]int, error) {
	places := map[int][]int{}
	for i, id := range list {
		p, err := names.PartitionIn(id, q.Partitions())
		if err != nil {
			return nil, err
		}
		places[p] = append(places[p], i)
	}
	return places, nil
}

// eachPartition calls step for the ids of each partition, up to 500 ids at a time. It works on
// all partitions at once, and returns the first error.
func (q *Queue) eachPartition(list []string, step func(partition int, ids []any, places []int) error) error {
	places, err := q.byPartition(list)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	errs := make(chan error, len(places))
	for p, mine := range places {
		group.Go(func() {
			for len(mine) > 0 {
				n := min(len(mine), maxList)
				args := make([]any, n)
				for i, place := range mine[:n] {
					args[i] = list[place]
				}
				if err := step(p, args, mine[:n]); err != nil {
					errs <- err
					return
				}
				mine = mine[n:]
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}
