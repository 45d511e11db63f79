// Package testclock gives tests a clock that stands still until they move it: the
// scripts read a key in place of Redis TIME.
package testclock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
)

// Start is where the clock of a new namespace stands.
var Start = time.UnixMilli(1_800_000_000_000)

// now replaces lua/store/now.lua.
const now = `
local function now(root)
  return tonumber(redis.call("GET", root .. ":clock")) or 1800000000000
end
`

// Library is the Lua with this clock, in the form that the server knows.
func Library(tb testing.TB, rdb redis.UniversalClient) *lua.Library {
	tb.Helper()
	functions := rdb.Eval(context.Background(), "#!lua\nreturn 1", nil).Err() == nil
	library, err := lua.Load(lua.Options{Functions: functions, Replace: map[string]string{"store/now": now}})
	if err != nil {
		tb.Fatal(err)
	}
	return library
}

// Set moves the clock of a partition.
func Set(tb testing.TB, rdb redis.UniversalClient, root string, at time.Time) {
	tb.Helper()
	if err := rdb.Set(context.Background(), root+":clock", at.UnixMilli(), 0).Err(); err != nil {
		tb.Fatal(err)
	}
}
