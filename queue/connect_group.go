package queue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
)

const (
	// poolSize bounds the connections to a node. A worker waits on one for each partition,
	// and needs more to work with; they are made when they are needed.
	poolSize = 256
	// dialFor bounds one dial, so that a host that swallows packets is left soon.
	dialFor = 2 * time.Second
	// mapAge is how old a cluster's map may become before it is read again.
	mapAge = time.Second
	// sentinelFor bounds one answer. It must be well below dialFor: go-redis asks a sentinel
	// within a dial, and stays with one that hangs if both end together.
	sentinelFor = time.Second
)

// ConnectCluster is [Connect] for a cluster whose options no URL can say, such as
// certificates. It completes the options that are zero, and sets ContextTimeoutEnabled.
//
// A client with go-redis' own defaults works too, but comes back later after a failover:
// it tries a dead address for half a second before it says so, waits five seconds for a
// node that hangs, and has connections for five partitions a processor.
func ConnectCluster(options *redis.ClusterOptions) *redis.ClusterClient {
	if options == nil {
		panic("queue: ConnectCluster needs options")
	}
	options.ContextTimeoutEnabled = true
	complete(&options.ClusterStateReloadInterval, mapAge)
	complete(&options.DialTimeout, dialFor)
	complete(&options.DialerRetries, 1) // the call is repeated, and by then the map is new
	complete(&options.PoolSize, poolSize)
	client := redis.NewClusterClient(options)
	client.OnNewNode(func(node *redis.Client) { node.AddHook(briefMap{}) })
	return client
}

// ConnectSentinel is [Connect] for a master that sentinels watch, if no URL can say the
// options. It completes those that are zero, and sets ContextTimeoutEnabled.
func ConnectSentinel(options *redis.FailoverOptions) *redis.Client {
	if options == nil {
		panic("queue: ConnectSentinel needs options")
	}
	options.ContextTimeoutEnabled = true
	complete(&options.DialTimeout, 2*dialFor)
	complete(&options.ReadTimeout, sentinelFor)
	complete(&options.DialerRetries, 1)
	complete(&options.PoolSize, poolSize)
	return redis.NewFailoverClient(options)
}

func complete[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}

// briefMap bounds the question where the slots are. go-redis asks one node after the
// other, and has the rest of the program wait for one that hangs.
type briefMap struct{}

func (briefMap) DialHook(next redis.DialHook) redis.DialHook { return next }

func (briefMap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if _, slots := cmd.(*redis.ClusterSlotsCmd); slots {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, engine.MapFor)
			defer cancel()
		}
		return next(ctx, cmd)
	}
}

func (briefMap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
