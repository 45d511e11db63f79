package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	masters = 3
	slots   = 16384
)

// Cluster is a Redis Cluster: three masters, each with a replica. The nodes notice a dead master
// after half a second, and its replica becomes the master about a second later.
type Cluster struct {
	Nodes []*Server // at the start three masters, and then their replicas in the same order

	ids []string
}

// StartCluster starts a cluster with its folders under dir. It returns when the cluster serves all
// slots and every replica has its master's data, after about three seconds.
func StartCluster(dir string) (*Cluster, error) {
	c := &Cluster{Nodes: make([]*Server, 2*masters), ids: make([]string, 2*masters)}
	if err := c.start(dir); err != nil {
		c.Kill()
		return nil, err
	}
	if err := errors.Join(c.join(), c.Await()); err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(dir string) error {
	var group sync.WaitGroup
	errs := make([]error, len(c.Nodes))
	for i := range c.Nodes {
		group.Go(func() { c.Nodes[i], errs[i] = startNode(filepath.Join(dir, fmt.Sprint("node", i))) })
	}
	group.Wait()
	return errors.Join(errs...)
}

func startNode(dir string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return start(dir, 2, func(ports []string) ([]string, error) {
		return append(plain(dir, ports[0]),
			"--cluster-enabled", "yes", "--cluster-port", ports[1], "--cluster-node-timeout", "500",
			"--cluster-replica-validity-factor", "0", // a replica that was disconnected for long can be promoted too
			"--cluster-require-full-coverage", "no", // a dead master stops its own slots only
			"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"), nil
	})
}

// join makes the nodes one cluster.
func (c *Cluster) join() error {
	for i, node := range c.Nodes {
		err := node.ask(func(ctx context.Context, rdb *redis.Client) (err error) {
			if c.ids[i], err = rdb.ClusterMyID(ctx).Result(); err != nil {
				return err
			}
			// Different epochs, so that the nodes need not resolve a conflict first.
			if err := rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
				return err
			}
			if i < masters {
				return rdb.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := c.introduce(); err != nil {
		return err
	}
	for i, replica := range c.Nodes[masters:] {
		master := c.ids[i]
		if err := await("replicas know their masters", func() error {
			return replica.ask(func(ctx context.Context, rdb *redis.Client) error {
				return rdb.ClusterReplicate(ctx, master).Err()
			})
		}); err != nil {
			return err
		}
	}
	return nil
}

// introduce makes each node meet each other one. MEET needs the bus port, which is not the default.
func (c *Cluster) introduce() error {
	for _, node := range c.Nodes {
		if err := node.ask(func(ctx context.Context, rdb *redis.Client) error {
			for _, peer := range c.Nodes {
				host, port, _ := strings.Cut(peer.Addr, ":")
				if err := rdb.Do(ctx, "CLUSTER", "MEET", host, port, peer.setting("--cluster-port")).Err(); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// setting returns the value of a setting on the command line, or "" if it is not there.
func (s *Server) setting(name string) string {
	for i, arg := range s.args[:len(s.args)-1] {
		if arg == name {
			return s.args[i+1]
		}
	}
	return ""
}

// Await returns when every node reports all slots as served and all nodes as healthy, and every
// replica has its master's data. It fails if a node needs more than two minutes.
func (c *Cluster) Await() error {
	for _, node := range c.Nodes {
		if err := await("the cluster is healthy", func() error {
			if err := node.says([]string{"cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:6", "cluster_size:3"}, "CLUSTER", "INFO"); err != nil {
				return err
			}
			return node.ask(func(ctx context.Context, rdb *redis.Client) error {
				info, err := rdb.Info(ctx, "replication").Result()
				if err != nil || strings.Contains(info, "role:slave") && !strings.Contains(info, "master_link_status:up") ||
					strings.Contains(info, "role:master") && !strings.Contains(info, "state=online") {
					return errors.Join(fmt.Errorf("%s is not connected to its master or replica yet", node.Addr), err)
				}
				nodes, err := rdb.ClusterNodes(ctx).Result()
				if err != nil || strings.Contains(nodes, "fail") || strings.Contains(nodes, "handshake") {
					return errors.Join(errors.New("not all nodes are healthy"), err)
				}
				return nil
			})
		}); err != nil {
			return err
		}
	}
	return nil
}

// Addrs returns the addresses of all nodes.
func (c *Cluster) Addrs() (addrs []string) {
	for _, node := range c.Nodes {
		addrs = append(addrs, node.Addr)
	}
	return addrs
}

// Master returns the node that serves a key, according to rdb's current map of the cluster.
func (c *Cluster) Master(ctx context.Context, rdb *redis.ClusterClient, key string) (*Server, error) {
	client, err := rdb.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, node := range c.Nodes {
		if node.Addr == client.Options().Addr {
			return node, nil
		}
	}
	return nil, fmt.Errorf("the master of %s is %s, which is not a node of this cluster", key, client.Options().Addr)
}

// Replica returns the other node of a master's shard, or nil if master is not a node of c.
func (c *Cluster) Replica(master *Server) *Server {
	for i, node := range c.Nodes {
		if node == master {
			return c.Nodes[(i+masters)%len(c.Nodes)]
		}
	}
	return nil
}

// Heal starts the dead nodes again, and returns when the cluster is healthy; see Await.
func (c *Cluster) Heal() error {
	for _, node := range c.Nodes {
		if node.process.ended() {
			if err := node.Restart(); err != nil {
				return err
			}
		}
	}
	return c.Await()
}

// Kill kills all nodes.
func (c *Cluster) Kill() {
	for _, node := range c.Nodes {
		if node != nil && node.process != nil {
			node.Kill()
		}
	}
}
