package httpapi

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// mostLines bounds the connections of requests that wait for tasks: each different list of queues has one for each partition. A
// request with another list looks every second instead.
const mostLines = 64

// shortest is the time between two looks of a request that waits. A shorter lease ends meanwhile.
const shortest = 100 * time.Millisecond

// idle are the requests of a namespace that wait for tasks. Those that wait for the same queues share a connection.
type idle struct {
	mu    sync.Mutex
	lists map[string]int // how many requests wait for a list of queues
}

// enter counts a request. It reports whether the request may have a connection.
func (i *idle) enter(list string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lists == nil {
		i.lists = map[string]int{}
	}
	if i.lists[list] == 0 && len(i.lists) >= mostLines {
		return false
	}
	i.lists[list]++
	return true
}

func (i *idle) leave(list string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lists[list]--; i.lists[list] == 0 {
		delete(i.lists, list)
	}
}

// await returns when a queue may have a task, or ctx ends, or the worker must fetch to keep its lease. look is when to fetch without
// a wake token. It returns the partitions whose tokens it has taken: the caller must fetch from them.
func (i *idle) await(ctx context.Context, q *queue.Queue, ask queue.Ask, look time.Duration) (tokens []bool) {
	ctx, stop := context.WithTimeout(ctx, max(ask.Lease/2, shortest))
	defer stop()
	names := make([]string, len(ask.Quotas))
	for n, quota := range ask.Quotas {
		names[n] = quota.Queue
	}
	slices.Sort(names)
	names = slices.Compact(names)
	list := strings.Join(names, " ")
	tokens = make([]bool, q.Partitions())
	if look < time.Second || !i.enter(list) {
		rest := time.NewTimer(min(look, time.Second))
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
		}
		return tokens
	}
	defer i.leave(list)
	var group sync.WaitGroup
	for p := range tokens {
		group.Go(func() {
			defer stop() // the first answer ends the other waits, which lose no token
			line := q.Attempts().WakeLine(p, names)
			defer line.Close()
			tokens[p], _ = line.Await(ctx, look) // an error is met by the fetch that follows
		})
	}
	group.Wait()
	return tokens
}
