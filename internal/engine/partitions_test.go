package engine

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

// All partitions are asked, whatever fails, and never more than 16 at once.
func TestEachAsksAllPartitionsAFewAtOnce(t *testing.T) {
	var mu sync.Mutex
	var asked []int
	running, most := 0, 0
	full := make(chan struct{}) // closed when as many run as may
	first, second := errors.New("first"), errors.New("second")
	err := Each(40, func(i int) error {
		mu.Lock()
		asked = append(asked, i)
		running++
		if most = max(most, running); running == atOnce && i < atOnce {
			close(full)
		}
		mu.Unlock()
		<-full
		mu.Lock()
		defer mu.Unlock()
		running--
		return map[int]error{7: first, 30: second}[i]
	})
	if slices.Sort(asked); len(asked) != 40 || len(slices.Compact(asked)) != 40 {
		t.Errorf("asked %v, want 0 to 39", asked)
	}
	if most != atOnce {
		t.Errorf("%d ran at once, want %d", most, atOnce)
	}
	if err != first {
		t.Errorf("the error is %v, want that of the lowest partition", err)
	}
	if err := Each(0, func(int) error { return first }); err != nil {
		t.Errorf("no partitions give %v", err)
	}
}
