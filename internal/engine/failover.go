package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// In a cluster a partition moves to another node when its master dies. go-redis reads the map of the
// cluster again when a node replies that a slot has moved. A dead node does not reply. So the engine makes
// go-redis read the map again when a call fails, and while a call gets no reply.

// MapFor is how long to wait until one node returns the map of the slots, before another node is
// asked. It must be short, because all users of the client wait for the map.
const MapFor = 500 * time.Millisecond

// lookAround is how often to check for another master while a call gets no reply.
const lookAround = 250 * time.Millisecond

// Remap makes go-redis read the map of a cluster again, in the background. If a read is under way, another
// one follows it.
func (e *Engine) Remap() {
	if e.cluster != nil {
		e.cluster.ReloadState(context.Background())
	}
}

// longestPause returns the longest pause between two tries of a call. It is shorter in a cluster: only
// some partitions are down there, and the other nodes refuse a call cheaply.
func (e *Engine) longestPause() time.Duration {
	if e.cluster != nil {
		return 200 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// watchMaster cancels a try without a reply as soon as its partition has another master. The old master
// may never reply, and the try would wait for it as long as for a slow server.
func (e *Engine) watchMaster(ctx context.Context, partition int) (try context.Context, leave func()) {
	if e.cluster == nil {
		return ctx, func() {}
	}
	try, giveUp := context.WithCancel(ctx)
	asked := e.master(partition)
	var done atomic.Bool
	var look func()
	look = func() {
		if done.Load() {
			return
		}
		if now := e.master(partition); now != nil && asked != nil && now != asked {
			giveUp()
			return
		}
		e.Remap()
		time.AfterFunc(lookAround, look)
	}
	first := time.AfterFunc(TryFor/2, look)
	return try, func() {
		done.Store(true)
		first.Stop()
		giveUp()
	}
}

// node returns a client of the server that has a partition, nil if the server is not known.
func (e *Engine) node(partition int) *redis.Client {
	if e.cluster != nil {
		return e.master(partition)
	}
	client, _ := e.rdb.(*redis.Client)
	return client
}

// master returns a client of the node that has a partition according to the map, nil if there is no map.
func (e *Engine) master(partition int) *redis.Client {
	ctx, cancel := context.WithTimeout(context.Background(), MapFor)
	defer cancel()
	master, err := e.cluster.MasterForKey(ctx, e.Root(partition))
	if err != nil {
		return nil
	}
	return master
}

// Node returns the connection for commands about all keys of a server, such as SCAN. In a cluster it is
// the node that has the partition.
func (e *Engine) Node(ctx context.Context, partition int) (redis.Cmdable, error) {
	if e.cluster == nil {
		return e.rdb, nil
	}
	return e.cluster.MasterForKey(ctx, e.Root(partition))
}

// places limits how many calls are under way at the same time on a server, to fewer than the client has
// connections to it: blocking calls need some of them. Without the limit a call could wait for a connection and
// have less time left for its reply. It would then be given up, with its connection, while Redis replies.
//
// In a cluster each node has places of its own, so that a node that hangs does not use up the places of the others.
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
	slots := p.held[address]
	if slots == nil {
		if p.held == nil {
			p.held = map[string]chan struct{}{}
		}
		slots = make(chan struct{}, p.most)
		p.held[address] = slots
	}
	return slots
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
