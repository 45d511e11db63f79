package harness

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

const talked = 1000 // lines of the role talk

func TestMain(m *testing.M) {
	Main(m, func(role string, _ *redis.Client, q *queue.Queue) {
		if role == "talk" {
			for n := range talked {
				fmt.Println("line", n)
			}
			return
		}
		fmt.Println("ready in " + q.Namespace())
		select {}
	})
}

func TestAChildEndsWhenItsParentDoes(t *testing.T) {
	s := New(t, redistest.Shared(t).Addr, queue.Config{})
	c := s.Spawn("wait")
	c.Says(t, "ready in "+s.Q.Namespace())
	c.stdin.Close() // as the end of this process does
	await.Receive(t, c.Gone, "the end of the child")
}

func TestKillReturnsWhenTheChildHasEnded(t *testing.T) {
	s := New(t, redistest.Shared(t).Addr, queue.Config{})
	c := s.Spawn("wait")
	c.Says(t, "ready")
	c.Kill()
	select {
	case <-c.Gone:
	default:
		t.Error("Kill returned before the end of the child")
	}
}

func TestAllOutputOfAnEndedChildIsThere(t *testing.T) {
	c := New(t, redistest.Shared(t).Addr, queue.Config{}).Spawn("talk")
	await.Receive(t, c.Gone, "the end of the child")
	if n := len(c.Lines); n != talked {
		t.Errorf("%d lines, want %d", n, talked)
	}
}
