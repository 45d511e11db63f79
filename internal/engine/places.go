package engine

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// places limits how many calls are under way at the same time on a server, to fewer than the client has
// connections to it: blocking calls need some of them. Without the limit a call could wait for a connection and
// have less time left for its reply. It would then be given up, with its connection, while Redis replies.
//
// In a cluster each node has places of its own, so that a node that hangs does not take those of the others.
type places struct {
	most int // on one server

	mu   sync.Mutex
	held map[string]chan struct{} // by the address of the server
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

// of returns the places of a server. All calls whose server is not known share places.
func (p *places) of(node *redis.Client) chan struct{} {
	address := ""
	if node != nil {
		address = node.Options().Addr
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.held[address]
	if held == nil {
		if p.held == nil {
			p.held = map[string]chan struct{}{}
		}
		held = make(chan struct{}, p.most)
		p.held[address] = held
	}
	return held
}

// enter waits for a place for a call on the server that has a partition, and takes it. A receive from held gives
// the place back. enter returns nil, and has taken no place, if ctx has ended: the outcome of a call that is not
// sent is known.
func (e *Engine) enter(ctx context.Context, partition int) (held chan struct{}) {
	held = e.places.of(e.node(partition))
	select {
	case held <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	if ctx.Err() != nil { // a select chooses among ready cases at random
		<-held
		return nil
	}
	return held
}
