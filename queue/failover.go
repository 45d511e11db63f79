package queue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// In a cluster a partition moves to another node when its master dies. go-redis reads
// its map of the cluster again when a node says that a slot has moved. A dead node
// says nothing, so we have the map read when a call fails, and while one gets no answer.

// lookAround is how often a call that gets no answer looks for another master.
const lookAround = 250 * time.Millisecond

// remap has a cluster's map read again, soon and in the background; if that is under
// way already, once more after it.
func (q *Queue) remap() {
	if q.cluster != nil {
		q.cluster.ReloadState(context.Background())
	}
}

// longestPause is how far the pauses between the tries of a call grow. In a cluster
// less than elsewhere: most of the fleet is served while one partition is not, and what
// is asked is cheap to refuse.
func (q *Queue) longestPause() time.Duration {
	if q.cluster != nil {
		return 200 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// watchMaster gives up a try that hangs once its partition has another master. The old
// one may never answer, and would be waited for as long as a slow server is.
func (q *Queue) watchMaster(ctx context.Context, partition int) (try context.Context, leave func()) {
	if q.cluster == nil {
		return ctx, func() {}
	}
	try, giveUp := context.WithCancel(ctx)
	asked := q.master(partition)
	var over atomic.Bool
	var look func()
	look = func() {
		if over.Load() {
			return
		}
		if now := q.master(partition); now != nil && asked != nil && now != asked {
			giveUp()
			return
		}
		q.remap()
		time.AfterFunc(lookAround, look)
	}
	first := time.AfterFunc(tryFor/2, look)
	return try, func() {
		over.Store(true)
		first.Stop()
		giveUp()
	}
}

// master is the client of the node that has a partition, as the map says; nil if there
// is no map.
func (q *Queue) master(partition int) *redis.Client {
	ctx, cancel := context.WithTimeout(context.Background(), mapFor)
	defer cancel()
	master, err := q.cluster.MasterForKey(ctx, q.Root(partition))
	if err != nil {
		return nil
	}
	return master
}
