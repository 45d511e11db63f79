package engine

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// places limits how many calls are under way at the same time, to fewer than the client has connections:
// blocking calls need some of them. Without the limit a call could wait for a connection and
// have less time left for its reply. It would then be given up, with its connection, while Redis replies.
//
// In a cluster each partition has places of its own, so that a node that hangs does not take
// those of the others.
type places struct {
	most int // in one partition

	mu   sync.Mutex
	held map[int]chan struct{} // by partition
}

// mostCalls returns the maximum number of calls under way: three quarters of the connections.
func mostCalls(rdb redis.UniversalClient) int {
	size := 0
	switch c := rdb.(type) {
	case *redis.Client:
		size = c.Options().PoolSize
	case *redis.ClusterClient:
		size = c.Options().PoolSize
	}
	if size <= 0 {
		return 1000
	}
	return max(size*3/4, 1)
}

// of returns the places of a partition.
func (p *places) of(partition int) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.held[partition]
	if held == nil {
		if p.held == nil {
			p.held = map[int]chan struct{}{}
		}
		held = make(chan struct{}, p.most)
		p.held[partition] = held
	}
	return held
}

// enter waits for a place for a call and takes it. A receive from held gives the place back. enter returns
// nil if ctx ends first.
func (e *Engine) enter(ctx context.Context, partition int) (held chan struct{}) {
	if e.cluster == nil {
		partition = 0 // all partitions are on one server
	}
	held = e.places.of(partition)
	select {
	case held <- struct{}{}:
		return held
	default:
	}
	select {
	case held <- struct{}{}:
		return held
	case <-ctx.Done():
		return nil
	}
}
