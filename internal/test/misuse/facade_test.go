package misuse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// otherLanguage is a user of a role whose program calls the functions for other languages. It
// cannot load functions, and so it cannot replace them.
func otherLanguage(t *testing.T, admin *redis.Client, role string) *redis.Client {
	t.Helper()
	words := slices.DeleteFunc(rules(t, role), func(rule string) bool { return rule == "+function|load" })
	return user(t, admin, role, append(words, "+fcall_ro")...)
}

func TestProgramsInOtherLanguagesNeedNoRightToLoadFunctions(t *testing.T) {
	t.Parallel()
	admin := redistest.Start(t).Client(t)
	if _, err := openAs(admin, "", quiet); err != nil { // it loads the functions
		t.Fatal(err)
	}
	producer, worker, reaper := otherLanguage(t, admin, "producer"), otherLanguage(t, admin, "worker"), otherLanguage(t, admin, "reaper")
	call := func(rdb *redis.Client, words ...any) []any {
		t.Helper()
		command := "FCALL"
		if words[0] == "curfew_get" || words[0] == "curfew_about" {
			command = "FCALL_RO"
		}
		reply, err := rdb.Do(t.Context(), append([]any{command, words[0], 1, "curfew:{0}"}, words[1:]...)...).Result()
		if err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		list, _ := reply.([]any)
		if list == nil {
			list = []any{reply}
		}
		return list
	}
	call(producer, "curfew_open")
	call(producer, "curfew_about")
	id := call(producer, "curfew_enqueue", "k", "payload", strings.Repeat("p", 1000), "timeout", "1m", "idempotency_key", "x")[0]
	promise := call(producer, "curfew_enqueue", "k", "role", "promise")[0]
	call(producer, "curfew_enqueue_many", `[{"kind":"k","id":"0-many"},{"kind":"k","delay":"1h"}]`)
	call(producer, "curfew_get", id)
	call(producer, "curfew_resolve", promise, "result", "yes")
	call(producer, "curfew_signal", id, "go")
	call(worker, "curfew_fetch", "w", "slots", 5)
	call(worker, "curfew_heartbeat", "w", "claims", fmt.Sprint(id, "=1"))
	call(worker, "curfew_settle", "w", id, 1, "result", strings.Repeat("r", 1000))
	call(reaper, "curfew_sweep", "r")
	call(producer, "curfew_result", id)
	call(producer, "curfew_cancel", "0-many")
	for name, rdb := range map[string]*redis.Client{"producer": producer, "worker": worker, "reaper": reaper} {
		err := rdb.FunctionLoadReplace(t.Context(), "#!lua name=curfew\nredis.register_function('curfew_enqueue', function() return 'stolen' end)").Err()
		if err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("the %s replaces the library: error %v, want NOPERM", name, err)
		}
	}
}
