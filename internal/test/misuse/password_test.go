package misuse

import (
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The password is changed while a program runs. Redis then refuses its new connections, and go-redis leaves the commands of a pipeline
// without an error and without a reply: no call may take that for an answer.
func TestEachCallSaysThatThePasswordChanged(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	set := func(args ...any) {
		t.Helper()
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("ACL", "SETUSER", "shop", "on", ">old", "~*", "&*", "+@all")
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "shop", Password: "old"})
	t.Cleanup(func() { rdb.Close() })
	q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: "shop", Partitions: 2, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Enqueue(t.Context(), queue.Task{Kind: "k"})
	if err != nil {
		t.Fatal(err)
	}
	set("ACL", "SETUSER", "shop", "resetpass", ">new")
	set("CLIENT", "KILL", "USER", "shop")
	writes, reads := calls(q, r.ID)
	for name, call := range reads {
		same(t, name, call(t.Context()), refusal.ErrNoAccess)
	}
	for name, call := range writes {
		same(t, name, call(t.Context()), refusal.ErrNoAccess)
	}
}
