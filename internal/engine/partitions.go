package engine

import "sync"

// atOnce is how many partitions are walked at once. A client has 10 connections for each processor, and other calls need some; a cluster
// with more masters than this is rare.
const atOnce = 16

// EachPartition calls do for each partition, as [Each] does.
func (e *Engine) EachPartition(do func(partition int) error) error { return Each(e.partitions, do) }

// Each calls do with 0 to n-1, up to 16 at once. Each index stands for one partition. Partitions can be on different
// servers, so an error in one stops no other: Each returns when all calls have returned, with the error of the lowest index.
func Each(n int, do func(i int) error) error {
	errs, free := make([]error, n), make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i := range n {
		free <- struct{}{} // before the goroutine begins: with 999 partitions there are never more than 16
		group.Go(func() {
			defer func() { <-free }()
			errs[i] = do(i)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
