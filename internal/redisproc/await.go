package redisproc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience bounds what a group of servers may take to agree.
const patience = 30 * time.Second

// await asks again and again until ready is nil. No server tells when others have
// heard of it.
func await(what string, ready func() error) error {
	give := time.Now().Add(patience)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Now().After(give) {
			return fmt.Errorf("redis-server: never in %v: %s: %w", patience, what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// says is nil if the answer to a command has all of the words.
func (s *Server) says(words []string, args ...any) error {
	return s.ask(func(ctx context.Context, rdb *redis.Client) error {
		answer, err := rdb.Do(ctx, args...).Result()
		if err != nil {
			return err
		}
		text := fmt.Sprint(answer)
		for _, word := range words {
			if !strings.Contains(text, word) {
				return fmt.Errorf("%s says to %v: %q", s.Addr, args, text)
			}
		}
		return nil
	})
}

// AwaitMaster returns when the server is a master: when a replica has been promoted.
func (s *Server) AwaitMaster() error {
	return await("a replica is promoted", func() error {
		return s.says([]string{"role:master"}, "INFO", "replication")
	})
}
