package worker

import (
	"maps"
	"sync"
	"time"
)

// maxThrottled is how many names a throttle allows in an interval. Producers choose the names of kinds, so there
// can be any number of them.
const maxThrottled = 100

// mostThrottled is the longest interval of a throttle.
const mostThrottled = time.Hour

// throttle allows something once in an interval, separately for each name. The interval doubles up to mostThrottled while
// the name comes at least once in each.
type throttle struct {
	every time.Duration
	mu    sync.Mutex
	names map[string]*interval
}

// interval is the interval of a name.
type interval struct {
	from, seen time.Time // when it began, and when the name last came
	span       time.Duration
}

func (t *throttle) allow(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	i, known := t.names[name]
	switch {
	case known && now.Sub(i.from) < i.span:
		i.seen = now
		return false
	case known && now.Sub(i.seen) < t.every: // it lasts
		*i = interval{now, now, min(2*i.span, mostThrottled)}
		return true
	}
	if !known && len(t.names) >= maxThrottled {
		maps.DeleteFunc(t.names, func(_ string, i *interval) bool { return now.Sub(i.from) >= i.span })
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
