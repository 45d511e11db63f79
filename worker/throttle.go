package worker

import (
	"maps"
	"sync"
	"time"
)

// maxThrottled is the greatest number of names that a throttle allows in an interval. It is needed
// because producers choose the names of kinds, and can choose any number of them.
const maxThrottled = 100

// maxInterval is the longest interval of a throttle.
const maxInterval = time.Hour

// throttle allows an action once in an interval, separately for each name. The interval of a name
// doubles, up to maxInterval, while the name occurs at least once in each.
type throttle struct {
	every time.Duration
	mu    sync.Mutex
	names map[string]*interval
}

// interval is the present interval of a name.
type interval struct {
	start, seen time.Time // the start of the interval, and the last time that the name occurred
	span        time.Duration
}

func (t *throttle) allow(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	i, exists := t.names[name]
	switch {
	case exists && now.Sub(i.start) < i.span:
		i.seen = now
		return false
	case exists && now.Sub(i.seen) < t.every: // the name still occurs, so the interval doubles
		*i = interval{now, now, min(2*i.span, maxInterval)}
		return true
	}
	if !exists && len(t.names) >= maxThrottled {
		maps.DeleteFunc(t.names, func(_ string, i *interval) bool { return now.Sub(i.start) >= i.span })
		if len(t.names) >= maxThrottled {
			return false
		}
	}
	if t.names == nil {
		t.names = map[string]*interval{}
	}
	t.names[name] = &interval{now, now, t.every}
	return true
}
