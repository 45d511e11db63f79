package worker

import (
	"maps"
	"sync"
	"time"
)

// maxThrottled is how many names a throttle allows in an interval. Producers choose the names of kinds, so there
// can be any number of them.
const maxThrottled = 100

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
	if len(t.last) >= maxThrottled {
		maps.DeleteFunc(t.last, func(_ string, last time.Time) bool { return now.Sub(last) >= t.every })
		if len(t.last) >= maxThrottled {
			return false
		}
	}
	if t.last == nil {
		t.last = map[string]time.Time{}
	}
	t.last[name] = now
	return true
}
