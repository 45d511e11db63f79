package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9"
)

// MasterName is the sentinels' name of the master.
const MasterName = "curfew-master"

// Sentinels is a master with two replicas, watched by three sentinels. They notice a dead master
// after two seconds and promote a replica. A shorter time does not work, because a sentinel
// connects to a server at most once a second. It could then report a master as dead that it has just
// promoted, before it has connected to it. So it would promote the next replica, and at last an empty
// one.
type Sentinels struct {
	Redis    []*Server // at the start the master, and then its replicas
	Watchers []*Server
}

// StartSentinels starts the servers and sentinels with their folders under dir. It returns when the
// sentinels know both replicas and each other.
func StartSentinels(dir string) (*Sentinels, error) {
	s := &Sentinels{}
	if err := errors.Join(s.startRedis(dir), s.startWatchers(dir), s.Await()); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

func (s *Sentinels) startRedis(dir string) error {
	for i := range 3 {
		place := filepath.Join(dir, fmt.Sprint("redis", i))
		if err := os.MkdirAll(place, 0o755); err != nil {
			return err
		}
		args := []string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}
		if i > 0 {
			args = append(args, "--replicaof", strings.Replace(s.Redis[0].Addr, ":", " ", 1))
		}
		server, err := Start(place, args...)
		if err != nil {
			return err
		}
		s.Redis = append(s.Redis, server)
	}
	return nil
}

func (s *Sentinels) startWatchers(dir string) error {
	if len(s.Redis) < 3 {
		return nil // startRedis has returned the error
	}
	// A sentinel that starts before the replicas have joined discovers them 10 s later.
	if err := await("replicas join", func() error {
		return s.Redis[0].says([]string{"slave0:", "slave1:", "connected_slaves:2"}, "INFO", "replication")
	}); err != nil {
		return err
	}
	for i := range 3 {
		server, err := s.startWatcher(filepath.Join(dir, fmt.Sprint("sentinel", i)))
		if err != nil {
			return err
		}
		s.Watchers = append(s.Watchers, server)
	}
	return nil
}

func (s *Sentinels) startWatcher(dir string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	settings := filepath.Join(dir, "sentinel.conf") // the sentinel rewrites this file
	return start(dir, 1, func(ports []string) ([]string, error) {
		host, port, _ := strings.Cut(s.Redis[0].Addr, ":")
		text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %[3]s %s %s 2\n"+
			"sentinel down-after-milliseconds %[3]s 2000\nsentinel failover-timeout %[3]s 3000\n", ports[0], dir, MasterName, host, port)
		return []string{settings, "--sentinel"}, os.WriteFile(settings, []byte(text), 0o644)
	})
}

// Await returns when every sentinel knows both replicas and the other sentinels, and none reports
// the master as down. It fails if a sentinel needs more than two minutes.
func (s *Sentinels) Await() error {
	for _, watcher := range s.Watchers {
		if err := await("the sentinels agree", func() error {
			return watcher.ask(func(ctx context.Context, rdb *redis.Client) error {
				words, err := rdb.Do(ctx, "SENTINEL", "MASTER", MasterName).StringSlice()
				if err != nil {
					return err
				}
				facts := map[string]string{}
				for i := 0; i+1 < len(words); i += 2 {
					facts[words[i]] = words[i+1]
				}
				if facts["num-slaves"] != "2" || facts["num-other-sentinels"] != "2" || facts["flags"] != "master" {
					return fmt.Errorf("%s knows %s replicas and %s other sentinels, and the master has the flags %s", watcher.Addr, facts["num-slaves"], facts["num-other-sentinels"], facts["flags"])
				}
				return nil
			})
		}); err != nil {
			return err
		}
	}
	return nil
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinels) Addrs() (addrs []string) {
	for _, watcher := range s.Watchers {
		addrs = append(addrs, watcher.Addr)
	}
	return addrs
}

// Master returns the server that the first sentinel names as the master.
func (s *Sentinels) Master() (master *Server, err error) {
	err = s.Watchers[0].ask(func(ctx context.Context, rdb *redis.Client) error {
		at, err := rdb.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName).StringSlice()
		if err != nil {
			return err
		}
		for _, server := range s.Redis {
			if server.Addr == strings.Join(at, ":") {
				master = server
				return nil
			}
		}
		return fmt.Errorf("the master is %v, which is not one of these servers", at)
	})
	return master, err
}

// Kill kills all sentinels and servers.
func (s *Sentinels) Kill() {
	for _, server := range append(s.Watchers, s.Redis...) {
		if server.process != nil {
			server.Kill()
		}
	}
}
