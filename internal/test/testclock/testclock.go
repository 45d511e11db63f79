// Package testclock gives tests a clock that moves only when they set it: the scripts read a key
// instead of Redis TIME.
package testclock

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
)

// Start is the time of a new namespace.
var Start = time.UnixMilli(1_800_000_000_000)

// now replaces lua/store/now.lua.
const now = `
local function now(root)
  return tonumber(redis.call("GET", root .. ":clock")) or 1800000000000
end
`

// Library returns the Lua with this clock, as functions or as scripts, whichever the server supports.
func Library(tb testing.TB, rdb redis.UniversalClient) *lua.Library {
	tb.Helper()
	return LibraryWith(tb, rdb, nil)
}

// LibraryWith is like Library, and replaces other files too.
func LibraryWith(tb testing.TB, rdb redis.UniversalClient, replace map[string]string) *lua.Library {
	tb.Helper()
	files := map[string]string{"store/now": now}
	maps.Copy(files, replace)
	functions := rdb.Eval(context.Background(), "#!lua\nreturn 1", nil).Err() == nil
	library, err := lua.Load(lua.Options{Functions: functions, Replace: files})
	if err != nil {
		tb.Fatal(err)
	}
	return library
}

// Facade returns the library of functions for other languages with this clock.
func Facade(tb testing.TB) *lua.Facade {
	tb.Helper()
	facade, err := lua.LoadFacade(map[string]string{"store/now": now})
	if err != nil {
		tb.Fatal(err)
	}
	return facade
}

// Set sets the clock of a partition.
func Set(tb testing.TB, rdb redis.UniversalClient, root string, at time.Time) {
	tb.Helper()
	if err := rdb.Set(context.Background(), root+":clock", at.UnixMilli(), 0).Err(); err != nil {
		tb.Fatal(err)
	}
}
