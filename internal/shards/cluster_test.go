package shards

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
)

const (
	// backAfter is how long a partition may be without service when its master has died:
	// three seconds are the promise, the rest is for a busy machine.
	backAfter = 5 * time.Second
	// backAfterPromotion is how much of it may be ours: the replica is there by then. A
	// pause between two tries, and reading the map, are a third of a second.
	backAfterPromotion = time.Second
	// spared is how much longer than the machine explains the others may be without service.
	spared = 250 * time.Millisecond
	// slotsBack is how long a partition that hangs may keep the worker's slots that it asked
	// for: what the others end waits for them.
	slotsBack = 1500 * time.Millisecond
)

func TestCluster(t *testing.T) {
	c := redistest.StartCluster(t)
	for _, test := range []struct {
		claim string
		test  func(*testing.T, *redistest.Cluster)
	}{
		{"a namespace spreads over the shards and works", testEverything},
		{"a killed master costs its own shard three seconds and the others nothing", testKilledMaster},
		{"a client with go-redis' own options comes back too", testOwnClient},
		{"a planned failover costs nobody an error", testPlannedFailover},
		{"a wait for work ends in peace with its master", testWakeLine},
		{"a master that hangs is left for its successor", testHungMaster},
	} {
		t.Run(test.claim, func(t *testing.T) { test.test(t, c) })
	}
}

func testKilledMaster(t *testing.T, c *redistest.Cluster) {
	killed(newStage(t, c.URL(), 8), c, 0)
}

// Its dials are tried for half a second, and it reads its map once a minute, unless told.
func testOwnClient(t *testing.T, c *redistest.Cluster) {
	killed(stageOf(t, 8, func() (redis.UniversalClient, error) {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()}), nil
	}), c, time.Second)
}

// killed kills masters. more is how much longer than our own clients others may take.
func killed(s *stage, c *redistest.Cluster, more time.Duration) {
	s.work(noop)
	s.work(noop)
	l := s.load()
	for counted, tried := 0, 0; counted < kills(); tried++ {
		if tried == 5*kills() {
			s.Fatalf("only %d of %d kills counted: this machine is too busy", counted, tried)
		}
		victim := c.Master(s.T, s.cluster(), s.Q.Root(tried%s.Q.Partitions()))
		counts, late := s.fails(c, l, victim, victim.Kill, more, 0)
		if late != "" {
			s.Error(late)
		}
		if counts {
			counted++
		}
		c.Heal(s.T)
		if role := victim.Client(s.T).Do(s.Context(), "ROLE").Val().([]any)[0]; role != "slave" {
			s.Errorf("the dead master came back as a %v, want as a replica", role)
		}
		s.flows(l, time.Now())
	}
	s.accountOf(l)
}

// A hang is noticed by looking: at a try that gets no answer, at the map, at a worker's
// slots. How long that takes depends on when each of them looks, and about one in five takes
// longer than the limit. So of three that count the best must be within it.
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
		t.Errorf("none of %d hangs that count was within the limits: %s", len(all), strings.Join(all, "; "))
	}
	s.accountOf(l)
}

// fails makes a master fail under load, and measures how long partitions are without service.
//
// late describes what took too long; it is empty if nothing did. hitMore is added to the limit
// of the partitions of that master, othersMore to the time for which the others may end no
// task. counts is false if the machine was too busy for the measurement to mean anything, for
// instance because another master was replaced too.
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
	stages.Pass(time.Second)
	usual := max(l.Gap(others, before))

	failed := time.Now()
	fail()
	if err := c.Replica(victim).AwaitMaster(); err != nil {
		s.Fatal(err)
	}
	promoted := time.Since(failed)
	for _, p := range served[victim.Addr] {
		await.Until(s.T, "the shard that was hit is served again", func() bool { return l.Flows(p, failed) })
	}
	away := max(l.Gap(served[victim.Addr], failed))
	acking, ending := l.Gap(others, failed)
	noise := max(usual, stop())
	s.Logf("%d partitions were without service for %v (the replica was promoted after %v); of the others none acknowledged nothing for more than %v, or ended nothing for more than %v; the machine explains %v",
		len(served[victim.Addr]), round(away), round(promoted), round(acking), round(ending), round(noise))
	for addr, partitions := range s.served() {
		if addr != c.Replica(victim).Addr && !slices.Equal(partitions, served[addr]) {
			s.Logf("%s has become the master of %v meanwhile: this does not count", addr, partitions)
			return false, ""
		}
	}
	if noise > time.Second {
		s.Log("the machine is too busy to tell: this does not count")
		return false, ""
	}
	slow := promoted > backAfter-backAfterPromotion // the election, which is not ours
	if !slow && away > backAfter+noise || away > promoted+backAfterPromotion+hitMore+noise {
		late = fmt.Sprintf("the partitions of the master that failed were without service for %v, the replica was there after %v", away, promoted)
	}
	if acking > spared+2*noise || ending > spared+2*noise+othersMore {
		late += fmt.Sprintf(" a partition of another master acknowledged nothing for %v, or ended nothing for %v; the machine explains %v", acking, ending, noise)
	}
	if slow {
		s.Log("the election took too long: this does not count")
	}
	return !slow, late
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
