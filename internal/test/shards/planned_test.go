package shards

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func testPlannedFailover(t *testing.T, c *redistest.Cluster) {
	s := newStage(t, c.URL(), 8)
	s.work(noop)
	l, failed := s.load(), failures(t, c)
	for p := range 2 {
		master := c.Master(t, s.cluster(), s.Q.Root(p))
		replica := c.Replica(master)
		rdb := replica.Client(t)
		// A replica gets the library from its master, so clients need not load it there.
		libraries := rdb.FunctionList(t.Context(), redis.FunctionListQuery{}).Val()
		if len(libraries) != 1 {
			t.Fatalf("the replica has the libraries %v, want one", libraries)
		}
		stop := pulse(t, c.Nodes)
		began := time.Now()
		if err := replica.Promote(); err != nil {
			t.Fatal(err)
		}
		if p == 1 { // without the library, clients must load it again
			if err := rdb.FunctionFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		s.flows(l, time.Now())
		gap := max(l.Gap(s.all(), began))
		noise := stop()
		t.Logf("the longest gap of all partitions is %v, noise of the machine: %v", round(gap), round(noise))
		if harness.Long() && gap > backAfterPromotion+2*noise {
			t.Errorf("a partition was without service for %v", gap)
		}
		if stats := rdb.Info(t.Context(), "commandstats").Val(); !strings.Contains(stats, "cmdstat_fcall:") {
			t.Errorf("the new master has not run a function:\n%s", stats)
		}
		// The first calls can be sent as scripts: the client does not know the new master yet.
		await.Until(t, "the new master has the library", func() bool {
			return len(rdb.FunctionList(t.Context(), redis.FunctionListQuery{}).Val()) == 1
		})
		if err := c.Await(); err != nil {
			t.Fatal(err)
		}
	}
	if failures(t, c) != failed {
		t.Log("the machine stopped a master for so long that the others took it for dead")
		s.accountOf(l)
	} else if acked, lost := s.account(l); lost > 0 {
		t.Errorf("%d of %d tasks are lost, want none: in a planned failover the replica gets all data first", lost, acked)
	}
	// Other log lines can come from a busy machine. So can CLUSTERDOWN: a node that was stopped for longer than the node timeout says it.
	for _, word := range []string{"UNBLOCKED", "MOVED", "READONLY", "NOSCRIPT", "Function not found"} {
		if strings.Contains(s.Logs.String(), word) {
			t.Errorf("%s was logged", word)
		}
	}
}

// failures returns how many messages the nodes of a cluster have sent to say that a node has failed. Its replica then takes over, with
// the data that it has.
func failures(t *testing.T, c *redistest.Cluster) (n int) {
	t.Helper()
	for _, node := range c.Nodes {
		info, err := (&redistest.Server{Server: node}).Client(t).ClusterInfo(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(info) {
			if count, ok := strings.CutPrefix(line, "cluster_stats_messages_fail_sent:"); ok {
				sent, _ := strconv.Atoi(strings.TrimSpace(count))
				n += sent
			}
		}
	}
	return n
}

// Redis ends blocking commands on a master that becomes a replica.
func testWakeLine(t *testing.T, c *redistest.Cluster) {
	s := newStage(t, c.URL(), 8)
	// Soon after a failover the masters vote for no other one of the same shard. So this one is in a shard that
	// testPlannedFailover leaves alone.
	p := 2
	for used := []string{c.Master(t, s.cluster(), s.Q.Root(0)).Addr, c.Master(t, s.cluster(), s.Q.Root(1)).Addr}; p < 7; p++ {
		if !slices.Contains(used, c.Master(t, s.cluster(), s.Q.Root(p)).Addr) {
			break
		}
	}
	master := c.Master(t, s.cluster(), s.Q.Root(p))
	awaited := make(chan error, 1)
	go func() {
		_, err := claim.Of(s.Q).WakeLine(p, []string{"default"}).Await(context.Background(), await.Patience)
		awaited <- err
	}()
	rdb := master.Client(t)
	await.Until(t, "Await blocks in Redis", func() bool {
		return rdb.InfoMap(t.Context(), "clients").Val()["Clients"]["blocked_clients"] == "1"
	})
	replica := c.Replica(master)
	if err := replica.Promote(); err != nil {
		t.Fatal(err)
	}
	if err := await.Receive(t, awaited, "Await returns"); err != nil {
		t.Errorf("Await = %v, want no error", err)
	}
	if err := c.Await(); err != nil {
		t.Fatal(err)
	}
}
