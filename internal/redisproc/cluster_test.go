//go:build unix

package redisproc

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestAStartedClusterServesAllSlotsAndFailsOver(t *testing.T) {
	t.Parallel()
	c, err := StartCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), DialerRetries: 1})
	defer rdb.Close()
	set := func() (served map[*Server]int) {
		served = map[*Server]int{}
		for i := range 100 {
			key := fmt.Sprint("k", i)
			if err := rdb.Set(t.Context(), key, "v", 0).Err(); err != nil {
				t.Fatalf("SET %s: %v", key, err)
			}
			master, err := c.Master(t.Context(), rdb, key)
			if err != nil {
				t.Fatal(err)
			}
			served[master]++
		}
		return served
	}
	if served := set(); len(served) != masters {
		t.Errorf("100 keys are served by %d masters, want %d", len(served), masters)
	}

	old := c.Nodes[0]
	old.Kill()
	successor := c.Replica(old)
	if err := successor.AwaitMaster(); err != nil {
		t.Fatal(err)
	}
	if err := c.Heal(); err != nil {
		t.Fatal(err)
	}
	if err := old.says([]string{"role:slave"}, "INFO", "replication"); err != nil {
		t.Error(err)
	}
	rdb.ReloadState(context.Background())
	if err := await("the client knows the new master", func() error {
		if served := set(); served[old] > 0 {
			return fmt.Errorf("%s still serves %d keys", old.Addr, served[old])
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestSentinelsPromoteAReplica(t *testing.T) {
	t.Parallel()
	s, err := StartSentinels(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	old, err := s.Master()
	if err != nil || old != s.Redis[0] {
		t.Fatalf("the master is %v, %v, want the first server", old, err)
	}
	old.Kill()
	if err := await("a replica is the master", func() error {
		master, err := s.Master()
		if err == nil && master == old {
			return fmt.Errorf("the master is still %s", old.Addr)
		}
		if err == nil {
			return master.says([]string{"role:master"}, "INFO", "replication")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
