package redistest

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// nominal is the CPU time that the work of Pace took on the machine for which the limits of CPU time in tests were set.
const nominal = 6500 * time.Microsecond

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

// Pace returns how many times as much CPU time as nominal a server takes for some work now, at least 1 and at most 4. A test of how much
// CPU time a script may take multiplies its limit by it, so that it passes on a machine with a slow processor.
func Pace(tb testing.TB, rdb redis.UniversalClient) float64 {
	tb.Helper()
	var took []time.Duration
	for range 5 {
		before, err := CPU(tb.Context(), rdb)
		if err != nil {
			tb.Fatal(err)
		}
		if err := work.Run(tb.Context(), rdb, []string{"pace"}, "payload").Err(); err != nil {
			tb.Fatal(err)
		}
		after, err := CPU(tb.Context(), rdb)
		if err != nil {
			tb.Fatal(err)
		}
		took = append(took, after-before)
	}
	slices.Sort(took)
	return min(max(float64(took[2])/float64(nominal), 1), 4)
}

// Paced returns a limit of CPU time, multiplied by the pace of a server.
func Paced(tb testing.TB, rdb redis.UniversalClient, limit time.Duration) time.Duration {
	tb.Helper()
	return time.Duration(float64(limit) * Pace(tb, rdb))
}
