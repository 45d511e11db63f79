package operate

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
)

// NameKind selects the names that Names searches for.
type NameKind string

// The kinds of names.
const (
	TaskIDs    NameKind = "ids"
	Queues     NameKind = "queues"
	Kinds      NameKind = "kinds"
	Workers    NameKind = "workers"
	Namespaces NameKind = "namespaces"
	Flows      NameKind = "flows" // ids of definitions
)

// someNames is how many names of a partition are read, and fewPartitions how many partitions.
const (
	someNames     = 200
	fewPartitions = 4
)

// Names returns some names of a namespace that begin with a prefix, sorted, for a shell to propose. It is cheap, and so not complete: it
// reads a few hundred names of the first partitions. It returns what it has when ctx ends or Redis fails.
func Names(ctx context.Context, rdb redis.UniversalClient, namespace string, kind NameKind, prefix string) []string {
	var list []string
	add := func(names []string, _ error) {
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				list = append(list, name)
			}
		}
	}
	if kind == Namespaces {
		keys, _, err := rdb.Scan(ctx, 0, "*:{0}", 10_000).Result()
		for i, key := range keys {
			keys[i], _, _ = rootOf(key)
		}
		add(keys, err)
	} else if kind == Flows {
		pairs, _, err := rdb.HScan(ctx, root(namespace, 0)+":flows", 0, "", someNames).Result() // ids and versions
		for i := 0; i+1 < len(pairs); i += 2 {
			add(pairs[i:i+1], err)
		}
	} else {
		var scans []*redis.ScanCmd
		var ranges []*redis.StringSliceCmd
		engine.Pipelined(ctx, rdb, func(pipe redis.Pipeliner) {
			for p := range fewPartitions {
				key := root(namespace, p)
				switch kind {
				case Queues:
					scans = append(scans, pipe.SScan(ctx, key+":queues", 0, "", someNames))
				case Kinds:
					scans = append(scans, pipe.SScan(ctx, key+":kinds", 0, "", someNames))
				case Workers:
					ranges = append(ranges, pipe.ZRange(ctx, key+":workers", 0, someNames-1))
				case TaskIDs:
					for _, clock := range []string{":deadlines", ":limits", ":delayed", ":retained"} {
						ranges = append(ranges, pipe.ZRange(ctx, key+clock, 0, someNames/4-1))
					}
				}
			}
		})
		for _, reply := range scans {
			names, _, err := reply.Result()
			add(names, err)
		}
		for _, reply := range ranges {
			add(reply.Result())
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(name string) bool { return name == "" })
}
