package redistest

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// Cluster is a Redis Cluster of six processes on loopback: three masters, each with a replica.
type Cluster struct {
	*redisproc.Cluster
}

// StartCluster starts a cluster, waits until it serves all slots, and stops it when the test ends.
func StartCluster(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := redisproc.StartCluster(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Kill)
	return &Cluster{c}
}

// SkipClusters skips a test of a cluster in a short run.
func SkipClusters(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("a cluster takes some seconds")
	}
}

// URL returns the URL of the cluster for queue.Connect.
func (c *Cluster) URL() string { return "redis+cluster://" + strings.Join(c.Addrs(), ",") }

// Master returns the node that serves a key, according to rdb's current map of the cluster.
func (c *Cluster) Master(tb testing.TB, rdb *redis.ClusterClient, key string) *Server {
	tb.Helper()
	node, err := c.Cluster.Master(tb.Context(), rdb, key)
	if err != nil {
		tb.Fatal(err)
	}
	return &Server{node}
}

// Replica returns the other node of a master's shard.
func (c *Cluster) Replica(master *Server) *Server {
	return &Server{c.Cluster.Replica(master.Server)}
}

// Heal starts the dead nodes again, and returns when the cluster is healthy; see Await.
func (c *Cluster) Heal(tb testing.TB) {
	tb.Helper()
	if err := c.Cluster.Heal(); err != nil {
		tb.Fatal(err)
	}
}
