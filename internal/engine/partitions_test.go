package engine

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// All partitions are asked, whatever fails, and never more than 16 at once.
func TestEachAsksAllPartitionsAFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []int
		running, most := 0, 0
		free := make(chan struct{})
		first, second := errors.New("first"), errors.New("second")
		result := make(chan error, 1)
		go func() {
			result <- Each(40, func(i int) error {
				mu.Lock()
				asked = append(asked, i)
				running++
				most = max(most, running)
				mu.Unlock()
				<-free
				mu.Lock()
				defer mu.Unlock()
				running--
				return map[int]error{7: first, 30: second}[i]
			})
		}()
		synctest.Wait() // until as many run as may
		if most != atOnce {
			t.Errorf("%d ran at once, want %d", most, atOnce)
		}
		close(free)
		if err := <-result; err != first {
			t.Errorf("the error is %v, want that of the lowest partition", err)
		}
		if slices.Sort(asked); len(asked) != 40 || len(slices.Compact(asked)) != 40 {
			t.Errorf("asked %v, want 0 to 39", asked)
		}
		if most > atOnce {
			t.Errorf("%d ran at once later, want %d", most, atOnce)
		}
	})
	if err := Each(0, func(int) error { return errors.New("of no partition") }); err != nil {
		t.Errorf("no partitions give %v", err)
	}
}
