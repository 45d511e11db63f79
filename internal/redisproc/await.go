package redisproc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is the longest time to wait until a server answers, or a group of servers agrees.
const patience = 2 * time.Minute

// await polls until ready returns nil. Redis sends no notification when servers know each other.
func await(what string, ready func() error) error {
	give := time.Now().Add(patience)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Now().After(give) {
			return fmt.Errorf("redis-server: not within %v: %s: %w", patience, what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// says returns nil if the reply to a command contains all of the words.
func (s *Server) says(words []string, args ...any) error {
	return s.ask(func(ctx context.Context, rdb *redis.Client) error {
		answer, err := rdb.Do(ctx, args...).Result()
		if err != nil {
			return err
		}
		text := fmt.Sprint(answer)
		for _, word := range words {
			if !strings.Contains(text, word) {
				return fmt.Errorf("%s replies to %v: %q", s.Addr, args, text)
			}
		}
		return nil
	})
}

// AwaitMaster returns when the server is a master, for example after a replica is promoted. It
// fails after two minutes.
func (s *Server) AwaitMaster() error {
	return await("a replica is promoted", func() error {
		return s.says([]string{"role:master"}, "INFO", "replication")
	})
}

// Promote makes a replica of a cluster the master of its shard, in a planned failover, and returns when it
// is. Redis gives a planned failover up after 5 s if the other masters have not voted, which happens soon
// after another failover. So Promote asks again.
func (s *Server) Promote() error {
	var asked time.Time
	return await("a replica is promoted", func() error {
		err := s.says([]string{"role:master"}, "INFO", "replication")
		if err != nil && time.Since(asked) > 6*time.Second {
			asked = time.Now()
			if err := s.says(nil, "CLUSTER", "FAILOVER"); err != nil {
				return err
			}
		}
		return err
	})
}
