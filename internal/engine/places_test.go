package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// aCluster returns a client of a cluster of two nodes, without connections.
func aCluster() *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 4, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{
			{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:1"}}},
			{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:2"}}},
		}, nil
	}})
}

// engineOf returns an engine without a server.
func engineOf(rdb redis.UniversalClient) *Engine {
	e := &Engine{rdb: rdb, partitions: 8}
	e.cluster, _ = rdb.(*redis.ClusterClient)
	e.places.most = mostCalls(rdb)
	return e
}

// Calls to one server share places, whatever their partitions. In a cluster each node has places of its own, so a
// node that hangs cannot take those of the others.
func TestPlacesBoundTheCallsUnderWay(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	for name, rdb := range map[string]redis.UniversalClient{
		"one server": redis.NewClient(&redis.Options{PoolSize: 4}), "a cluster": aCluster(),
	} {
		t.Run(name, func(t *testing.T) {
			defer rdb.Close()
			e := engineOf(rdb)
			here, there := []int{}, []int{} // partitions of the node of partition 0, and of the other one
			for p := range e.partitions {
				if e.node(p) == e.node(0) {
					here = append(here, p)
				} else {
					there = append(there, p)
				}
			}
			if len(here) < 4 || (len(there) > 0) != (e.cluster != nil) {
				t.Fatalf("partitions %v are on one node, and %v on another", here, there)
			}
			var place chan struct{}
			for _, p := range here[:3] {
				if place = e.enter(t.Context(), p); place == nil {
					t.Fatal("there are fewer than 3 places")
				}
			}
			if len(place) != cap(place) {
				t.Error("there are more than 3 places")
			}
			if len(there) > 0 && e.enter(t.Context(), there[0]) == nil {
				t.Error("another node has no place")
			}
			entered := make(chan chan struct{})
			go func() { entered <- e.enter(t.Context(), here[3]) }()
			<-place
			if <-entered == nil {
				t.Error("a place cannot be taken after it was given back")
			}
		})
	}
	// A free place is not taken by a call whose context has ended.
	cancel(errors.New("ended"))
	e := engineOf(redis.NewClient(&redis.Options{PoolSize: 4}))
	defer e.rdb.Close()
	for range 100 { // a select chooses among ready cases at random
		if e.enter(ended, 0) != nil {
			t.Fatal("a call whose context has ended entered")
		}
	}
	if held := e.places.of(e.node(0)); len(held) > 0 {
		t.Errorf("%d places are held", len(held))
	}
}
