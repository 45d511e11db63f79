package worker

import (
	"sync"
	"time"
)

// throttle lets the first of what has the same name pass, and then one in a while.
type throttle struct {
	every time.Duration
	mu    sync.Mutex
	last  map[string]time.Time
}

func (t *throttle) pass(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if last, ok := t.last[name]; ok && now.Sub(last) < t.every {
		return false
	}
	if t.last == nil || len(t.last) >= 1000 {
		t.last = map[string]time.Time{} // strangers choose the names: bound them
	}
	t.last[name] = now
	return true
}
