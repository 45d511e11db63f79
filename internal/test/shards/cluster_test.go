package shards

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// These limits count in a long run only, and are compared with the noise of the machine in the same moment.
const (
	// backAfter is how long a partition can be without service after its master has failed.
	// The documented time is three seconds; the rest is for a busy machine.
	backAfter = 5 * time.Second
	// backAfterPromotion is how much of that can come after the promotion of the replica. A
	// pause between two tries, and reading the map of the cluster, take a third of a second.
	backAfterPromotion = time.Second
	// spared is how long the other partitions can be without service, beyond the noise of the
	// machine.
	spared = 250 * time.Millisecond
	// slotsBack is how long a partition that hangs can keep the worker's slots of its fetch.
	// Tasks of the other partitions wait for these slots.
	slotsBack = 1500 * time.Millisecond
)

func TestCluster(t *testing.T) {
	c := redistest.StartCluster(t)
	for _, test := range []struct {
		claim string
		test  func(*testing.T, *redistest.Cluster)
		long  bool // only in a long run
	}{
		{"a namespace spreads over the shards and works", testEverything, false},
		{"a killed master stops its own shard for three seconds and no other shard", testKilledMaster, false},
		{"a client with the default options of go-redis recovers too", testOwnClient, true},
		{"a planned failover causes no error", testPlannedFailover, false},
		{"a wait for work ends without an error in a failover", testWakeLine, false},
		{"a shard that is away stops no other shard", testShardAway, false},
		{"clients leave a master that hangs for its successor", testHungMaster, true},
	} {
		if test.long && !harness.Long() {
			continue
		}
		t.Run(test.claim, func(t *testing.T) { test.test(t, c) })
	}
}

func testKilledMaster(t *testing.T, c *redistest.Cluster) {
	killed(newStage(t, c.URL(), 8), c, 0)
}

// Such a client tries to connect for half a second. It reads the map of the cluster once a minute,
// and when a call fails.
func testOwnClient(t *testing.T, c *redistest.Cluster) {
	killed(stageOf(t, 8, func() (redis.UniversalClient, error) {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()}), nil
	}), c, time.Second)
}

// killed kills masters. more is added to the limit, for clients that recover more slowly.
func killed(s *stage, c *redistest.Cluster, more time.Duration) {
	s.work(noop)
	s.work(noop)
	l := s.load()
	for counted, tried := 0, 0; counted < kills(); tried++ {
		if tried == 5*kills() && harness.Long() {
			s.Fatalf("only %d of %d kills could be measured: this machine is too busy", counted, tried)
		}
		victim := c.Master(s.T, s.cluster(), s.Q.Root(tried%s.Q.Partitions()))
		counts, late := s.fails(c, l, victim, victim.Kill, more, 0)
		if late != "" && harness.Long() {
			s.Error(late)
		}
		if counts || !harness.Long() {
			counted++
		}
		c.Heal(s.T)
		if role := victim.Client(s.T).Do(s.Context(), "ROLE").Val().([]any)[0]; role != "slave" {
			s.Errorf("the role of the restarted master is %v, want slave", role)
		}
		s.flows(l, time.Now())
	}
	s.accountOf(l)
}

// While neither the master nor the replica of a shard runs, the partitions of the other shards end tasks.
func testShardAway(t *testing.T, c *redistest.Cluster) {
	s := newStage(t, c.URL(), 8)
	s.work(noop)
	l := s.load()
	victim := c.Master(t, s.cluster(), s.Q.Root(0))
	served := s.served()
	nodes := []*redistest.Server{c.Replica(victim), victim}
	for _, node := range nodes {
		node.Pause()
		t.Cleanup(node.Resume)
	}
	away := time.Now()
	for addr, partitions := range served {
		for _, p := range partitions {
			if addr != victim.Addr {
				await.Until(t, "each partition of another shard ends tasks", func() bool { return l.Flows(p, away) })
			}
		}
	}
	for _, node := range nodes {
		node.Resume()
	}
	c.Heal(t)
	s.flows(l, time.Now())
	s.accountOf(l)
}

// A hang is only noticed by polling: a try without a reply, the map of the cluster, the slots of a
// worker. The time depends on when each of them polls, and about one hang in five takes longer than
// the limit. So the best of three measured hangs must be within it.
func testHungMaster(t *testing.T, c *redistest.Cluster) {
	s := newStage(t, c.URL(), 8)
	s.work(noop)
	s.work(noop)
	l := s.load()
	var all []string
	for tried := 0; tried < 5 && len(all) < 3; tried++ {
		victim := c.Master(t, s.cluster(), s.Q.Root(tried))
		t.Cleanup(victim.Resume)
		counts, late := s.fails(c, l, victim, victim.Pause, 0, slotsBack)
		victim.Resume()
		c.Heal(t)
		s.flows(l, time.Now())
		if counts && late == "" {
			all = nil
			break
		} else if counts {
			all = append(all, late)
		}
	}
	if len(all) > 0 {
		t.Errorf("none of %d measured hangs was within the limits: %s", len(all), strings.Join(all, "; "))
	}
	s.accountOf(l)
}

// fails makes a master fail under load and measures how long partitions are without service.
//
// late says what took too long, and is empty if nothing did. hitMore is added to the limit of the
// partitions of that master. othersMore is added to the time in which the others can end no task.
// counts is false if the measurement says nothing, for example because the machine was too busy or
// another master was replaced too.
func (s *stage) fails(c *redistest.Cluster, l *bench.Load, victim *redistest.Server, fail func(), hitMore, othersMore time.Duration) (counts bool, late string) {
	s.Helper()
	served := s.served()
	var others []int
	for addr, partitions := range served {
		if addr != victim.Addr {
			others = append(others, partitions...)
		}
	}
	before := time.Now()
	stop := pulse(s.T, except(c.Nodes, victim.Server))
	harness.Pass(time.Second)
	usual := max(l.Gap(others, before))

	failed := time.Now()
	fail()
	if err := c.Replica(victim).AwaitMaster(); err != nil {
		s.Fatal(err)
	}
	promoted := time.Since(failed)
	for _, p := range served[victim.Addr] {
		await.Until(s.T, "the partitions of the failed master are served again", func() bool { return l.Flows(p, failed) })
	}
	away := max(l.Gap(served[victim.Addr], failed))
	acking, ending := l.Gap(others, failed)
	noise := max(usual, stop())
	s.Logf("%d partitions were without service for %v (the replica was promoted after %v); longest gaps of the others: %v without an acknowledgement, %v without an end; noise of the machine: %v",
		len(served[victim.Addr]), round(away), round(promoted), round(acking), round(ending), round(noise))
	for addr, partitions := range s.served() {
		if addr != c.Replica(victim).Addr && !slices.Equal(partitions, served[addr]) {
			s.Logf("not counted: %s became the master of %v too", addr, partitions)
			return false, ""
		}
	}
	if noise > time.Second {
		s.Log("not counted: the machine is too busy")
		return false, ""
	}
	// real time: a kill on a busy machine is not counted
	slow := promoted > backAfter-backAfterPromotion // the election of Redis was slow
	if !slow && away > backAfter+noise || away > promoted+backAfterPromotion+hitMore+noise {
		late = fmt.Sprintf("the partitions of the failed master were without service for %v, and the replica was promoted after %v", away, promoted)
	}
	if acking > spared+2*noise || ending > spared+2*noise+othersMore {
		late += fmt.Sprintf(" a partition of another master acknowledged nothing for %v, or ended nothing for %v; noise of the machine: %v", acking, ending, noise)
	}
	if slow {
		s.slow = true
		s.Log("not counted: the election took too long")
	}
	return !slow, late
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
