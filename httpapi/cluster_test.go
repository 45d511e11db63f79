package httpapi

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A shard of a cluster hangs. Requests that need it are answered within a second, and others are served as before.
func TestOneShardOfAClusterHangs(t *testing.T) {
	t.Parallel()
	redistest.SkipClusters(t)
	cluster := redistest.StartCluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { rdb.Close() })
	s := stageOf(t, queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 8}), Config{Silence: awaySilence})
	first := cluster.Master(t, rdb, s.q.Root(0))
	sick, well := "", s.enqueueIn(0)
	var victim *redistest.Server
	for p := 1; sick == ""; p++ {
		if victim = cluster.Master(t, rdb, s.q.Root(p)); victim.Addr != first.Addr {
			sick = s.enqueueIn(p)
		}
	}
	waits := make(chan answered, 2)
	go func() { waits <- s.do("GET", "tasks/"+sick+"/result?wait=60s", "") }()
	go func() { waits <- s.do("GET", "tasks/"+well+"/result?wait=60s", "") }()
	await.Until(t, "the requests wait", func() bool { return len(s.server.waiting) == 2 })
	replica := cluster.Replica(victim)
	for _, node := range []*redistest.Server{replica, victim} {
		node.Pause()
		t.Cleanup(node.Resume)
	}
	if a := await.Receive(t, waits, "the answer"); a.status != 503 || a.word() != "unavailable" {
		t.Errorf("the request that waits for the sick shard: %d %s", a.status, a.body)
	}
	for method, path := range map[string]string{"GET": "tasks/" + sick, "POST": "tasks/" + sick + "/cancel"} {
		if a := s.do(method, path, ""); a.status != 503 && a.status != 504 {
			t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
		}
	}
	for range 50 {
		s.want(200, "GET", "tasks/"+well, "")
	}
	if a := s.do("GET", "/healthz", ""); a.status != 503 {
		t.Errorf("/healthz: %d %s", a.status, a.body)
	}
	select {
	case a := <-waits:
		t.Errorf("the request that waits for a healthy shard: %d %s", a.status, a.body)
	default:
	}
	s.want(200, "POST", "tasks/"+well+"/cancel", "")
	if a := await.Receive(t, waits, "the answer"); a.status != 200 {
		t.Errorf("the result from the healthy shard: %d %s", a.status, a.body)
	}
	victim.Resume()
	replica.Resume()
	await.Until(t, "requests are answered again", func() bool {
		return s.do("GET", "tasks/"+sick, "").status == 200 && s.do("GET", "/healthz", "").status == 200
	})
}

// enqueueIn enqueues a task in a partition.
func (s *stage) enqueueIn(partition int) string {
	s.t.Helper()
	return s.want(201, "POST", "tasks", fmt.Sprintf(`{"kind":"k","id":"%d-one"}`, partition)).text("id")
}
