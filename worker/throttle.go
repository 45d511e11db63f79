package worker

import (
	"sync"
	"time"
)

// maxThrottled is how many names a throttle remembers. Producers choose the names of kinds, so there
// can be any number of them.
const maxThrottled = 1000

// throttle allows something once in every interval, separately for each name.
type throttle struct {
	every time.Duration
	mu    sync.Mutex
	last  map[string]time.Time
}

func (t *throttle) allow(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if last, ok := t.last[name]; ok && now.Sub(last) < t.every {
		return false
	}
	if t.last == nil || len(t.last) >= maxThrottled {
		t.last = map[string]time.Time{}
	}
	t.last[name] = now
	return true
}
