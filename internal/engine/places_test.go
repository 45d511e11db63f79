package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Calls to one server share places. A node of a cluster that hangs holds those of its own
// partitions, and no others.
func TestPlaces(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("ended"))
	for _, c := range []struct {
		name  string
		rdb   redis.UniversalClient
		other bool // another partition has a place
	}{
		{"one server", redis.NewClient(&redis.Options{PoolSize: 4}), false},
		{"a cluster", redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 4}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer c.rdb.Close()
			e := &Engine{rdb: c.rdb}
			e.cluster, _ = c.rdb.(*redis.ClusterClient)
			e.places.most = mostCalls(c.rdb)
			var free func()
			for range 3 {
				var ok bool
				if free, ok = e.enter(ended, 1); !ok {
					t.Fatal("there are fewer than 3 places")
				}
			}
			if _, ok := e.enter(ended, 1); ok {
				t.Error("there are more than 3 places")
			}
			if _, ok := e.enter(ended, 2); ok != c.other {
				t.Errorf("another partition has a place: %v, want %v", ok, c.other)
			}
			free()
			if _, ok := e.enter(ended, 1); !ok {
				t.Error("a place that is free again is not given")
			}
		})
	}
}
