package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Calls to one server share places. In a cluster each partition has places of its own, so a node that
// hangs cannot take those of the others.
func TestPlacesBoundTheCallsUnderWay(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("ended"))
	for _, c := range []struct {
		name  string
		rdb   redis.UniversalClient
		other bool // whether another partition still has a place
	}{
		{"one server", redis.NewClient(&redis.Options{PoolSize: 4}), false},
		{"a cluster", redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 4}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer c.rdb.Close()
			e := &Engine{rdb: c.rdb}
			e.cluster, _ = c.rdb.(*redis.ClusterClient)
			e.places.most = mostCalls(c.rdb)
			var place chan struct{}
			for range 3 {
				if place = e.enter(ended, 1); place == nil {
					t.Fatal("there are fewer than 3 places")
				}
			}
			if e.enter(ended, 1) != nil {
				t.Error("there are more than 3 places")
			}
			if ok := e.enter(ended, 2) != nil; ok != c.other {
				t.Errorf("another partition has a place: %v, want %v", ok, c.other)
			}
			<-place
			if e.enter(ended, 1) == nil {
				t.Error("a place cannot be taken after it was given back")
			}
		})
	}
}
