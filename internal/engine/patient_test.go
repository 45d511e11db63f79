package engine

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// A client is made patient once, however many namespaces it opens, and is not kept in memory for that.
func TestAClientIsSeenOnceAndForgotten(t *testing.T) {
	before := seenClients()
	func() {
		a, b := redis.NewClient(&redis.Options{}), redis.NewClient(&redis.Options{})
		first := func(client *redis.Client) bool {
			_, first := dialsOf(unsafe.Pointer(client))
			return first
		}
		for i, want := range []bool{true, false, false} {
			if first(a) != want || first(b) != want {
				t.Errorf("call %d says that a client is new: %v, want %v", i, !want, want)
			}
		}
		if n := seenClients(); n != before+2 {
			t.Errorf("%d clients are known, want %d", n, before+2)
		}
		a.Close()
		b.Close()
	}()
	await.Until(t, "the clients are forgotten", func() bool {
		runtime.GC()
		return seenClients() == before
	})
}

func seenClients() (n int) {
	prepared.Range(func(any, any) bool { n++; return true })
	return n
}
