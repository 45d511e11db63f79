package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// In a cluster a partition moves to another node when its master dies. go-redis reads
// its map of the cluster again when a node says that a slot has moved. A dead node
// says nothing, so we have the map read when a call fails, and while one gets no answer.

// MapFor bounds one node's answer to where the slots are. Another node is asked then, and all
// who use the client wait for the answer.
const MapFor = 500 * time.Millisecond

// lookAround is how often a call that gets no answer looks for another master.
const lookAround = 250 * time.Millisecond

// Remap has a cluster's map read again, soon and in the background; if that is under
// way already, once more after it.
func (e *Engine) Remap() {
	if e.cluster != nil {
		e.cluster.ReloadState(context.Background())
	}
}

// longestPause is how far the pauses between the tries of a call grow. In a cluster
// less than elsewhere: most of the fleet is served while one partition is not, and what
// is asked is cheap to refuse.
func (e *Engine) longestPause() time.Duration {
	if e.cluster != nil {
		return 200 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// watchMaster gives up a try that hangs once its partition has another master. The old
// one may never answer, and would be waited for as long as a slow server is.
func (e *Engine) watchMaster(ctx context.Context, partition int) (try context.Context, leave func()) {
	if e.cluster == nil {
		return ctx, func() {}
	}
	try, giveUp := context.WithCancel(ctx)
	asked := e.master(partition)
	var over atomic.Bool
	var look func()
	look = func() {
		if over.Load() {
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
		over.Store(true)
		first.Stop()
		giveUp()
	}
}

// node is the client of the server that has a partition; nil if it is not known.
func (e *Engine) node(partition int) *redis.Client {
	if e.cluster != nil {
		return e.master(partition)
	}
	client, _ := e.rdb.(*redis.Client)
	return client
}

// master is the client of the node that has a partition, as the map says; nil if there
// is no map.
func (e *Engine) master(partition int) *redis.Client {
	ctx, cancel := context.WithTimeout(context.Background(), MapFor)
	defer cancel()
	master, err := e.cluster.MasterForKey(ctx, e.Root(partition))
	if err != nil {
		return nil
	}
	return master
}

// Node is what a command about all keys of a server, such as SCAN, is sent to: in a cluster the
// node that has a partition.
func (e *Engine) Node(ctx context.Context, partition int) (redis.Cmdable, error) {
	if e.cluster == nil {
		return e.rdb, nil
	}
	return e.cluster.MasterForKey(ctx, e.Root(partition))
}
