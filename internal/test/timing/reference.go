package timing

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// work has commands and Lua as the calls of a queue have them.
var work = redis.NewScript(`
local line, sum = KEYS[1] .. ":line", 0
for i = 1, 1000 do
  local key = KEYS[1] .. ":" .. i
  redis.call("SET", key .. ":payload", ARGV[1])
  redis.call("HSET", key, "status", "PENDING", "epoch", i, "queue", "default")
  redis.call("ZADD", line, i, key)
  local fields = redis.call("HMGET", key, "status", "epoch", "queue")
  sum = sum + #string.match(table.concat(fields, " "), "^(%S+) .*$")
  redis.call("ZREM", line, key)
  redis.call("DEL", key, key .. ":payload")
end
return sum`)

// Work is a reference for Compare: the CPU time that a server takes for 7,000 commands in a script. On a processor of 3 GHz
// it is about 6 ms. The server must do nothing else meanwhile.
func Work(t *testing.T, rdb redis.UniversalClient) func() time.Duration {
	return func() time.Duration {
		t.Helper()
		return median(5, func() time.Duration {
			return CPU(t, rdb, func() {
				if err := work.Run(t.Context(), rdb, []string{"reference"}, "payload").Err(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// CPU returns the CPU time that a server uses while run runs.
func CPU(t *testing.T, rdb redis.UniversalClient, run func()) time.Duration {
	t.Helper()
	before, err := redistest.CPU(t.Context(), rdb)
	if err != nil {
		t.Fatal(err)
	}
	run()
	after, err := redistest.CPU(t.Context(), rdb)
	if err != nil {
		t.Fatal(err)
	}
	return after - before
}

// median returns the median of n measured times.
func median(n int, measure func() time.Duration) time.Duration {
	var all []time.Duration
	for range n {
		all = append(all, measure())
	}
	slices.Sort(all)
	return all[n/2]
}
