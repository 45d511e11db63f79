package queue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
)

const (
	// poolSize bounds the connections to a node. A worker waits on one connection for each
	// partition, and needs more for its calls. go-redis makes a connection only when it is needed,
	// so a large pool costs nothing.
	poolSize = 256
	// dialFor bounds one dial, because a host that drops packets would otherwise hold a call much
	// longer.
	dialFor = 2 * time.Second
	// mapAge is the greatest age of a cluster's slot map before it is read again.
	mapAge = time.Second
	// sentinelFor bounds one reply. It must be well below dialFor: go-redis asks a sentinel within
	// a dial, and if both end together it does not try the next sentinel.
	sentinelFor = time.Second
)

// ConnectCluster is [Connect] for a cluster whose options a URL cannot express. It sets the
// defaults of Curfew for the options that are zero, and sets ContextTimeoutEnabled. It panics if
// options is nil.
//
// A client with go-redis' own defaults works too, but recovers later after a failover: it tries
// a dead address for half a second before it reports an error, waits five seconds for a node that
// hangs, and has connections for only five partitions a processor.
func ConnectCluster(options *redis.ClusterOptions) *redis.ClusterClient {
	if options == nil {
		panic("queue: ConnectCluster needs options")
	}
	options.ContextTimeoutEnabled = true
	complete(&options.ClusterStateReloadInterval, mapAge)
	complete(&options.DialTimeout, dialFor)
	complete(&options.DialerRetries, 1) // Curfew repeats the call itself, with a new slot map
	complete(&options.PoolSize, poolSize)
	client := redis.NewClusterClient(options)
	client.OnNewNode(func(node *redis.Client) { node.AddHook(briefMap{}) })
	return client
}

// ConnectSentinel is [Connect] for a master that sentinels watch, with options that a URL cannot
// express. It sets the defaults of Curfew for the options that are zero, and sets
// ContextTimeoutEnabled. It panics if options is nil.
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

// briefMap bounds the time of CLUSTER SLOTS. go-redis tries the nodes one after the other, and all
// calls of the program wait while a node hangs.
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
