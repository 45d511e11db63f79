package facade

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// client is a program that knows Redis and not Go.
type client struct {
	testing.TB
	rdb  redis.UniversalClient
	root string
}

// clientOf is a client of the first partition of a namespace.
func clientOf(t testing.TB, rdb redis.UniversalClient, q *queue.Queue) *client {
	return &client{t, rdb, q.Root(0)}
}

// try calls a function.
func (c *client) try(function string, args ...any) (any, error) {
	command := "FCALL"
	switch function {
	case "about", "get", "stats":
		command = "FCALL_RO"
	}
	return c.rdb.Do(c.Context(), append([]any{command, "curfew_" + function, 1, c.root}, args...)...).Result()
}

// call calls a function that must be accepted, and returns the names and values of its reply.
func (c *client) call(function string, args ...any) map[string]any {
	c.Helper()
	reply, err := c.try(function, args...)
	if err != nil {
		c.Fatal(err)
	}
	return named(reply)
}

// enqueue returns the id of a task.
func (c *client) enqueue(args ...any) string {
	c.Helper()
	id, err := c.try("enqueue", args...)
	if err != nil {
		c.Fatal(err)
	}
	return fmt.Sprint(id)
}

// claims takes tasks.
func (c *client) claims(worker string, args ...any) []map[string]any {
	c.Helper()
	var all []map[string]any
	for _, claim := range c.call("fetch", append([]any{worker}, args...)...)["claims"].([]any) {
		all = append(all, named(claim))
	}
	return all
}

// named reads a list of names and values.
func named(reply any) map[string]any {
	words, _ := reply.([]any)
	m := map[string]any{}
	for i := 0; i+1 < len(words); i += 2 {
		m[fmt.Sprint(words[i])] = words[i+1]
	}
	return m
}
