package tasks

import "sync"

// together calls do for all ids, several at a time, and stores the outcomes. After an error it
// begins no further calls. It returns the outcomes of the successful calls, and the first error.
func together(ids []string, list []outcome, do func(id string) (outcome, error)) ([]outcome, error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := 0
	done := make([]bool, len(ids))
	for range min(len(ids), 16) {
		group.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := failed != nil || i >= len(ids)
				mu.Unlock()
				if stop {
					return
				}
				o, err := do(ids[i])
				mu.Lock()
				if list[i], done[i] = o, err == nil; err != nil && failed == nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	var outcomes []outcome
	for i := range list {
		if done[i] {
			outcomes = append(outcomes, list[i])
		}
	}
	return outcomes, failed
}
