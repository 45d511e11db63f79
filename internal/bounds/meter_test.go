package bounds

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
)

// meter measures the CPU time that each command of a client costs a server.
type meter struct {
	*redistest.Meter
	alone *redis.Client
}

// newMeter begins to measure the commands of a client.
func newMeter(t *testing.T, server *redistest.Server, rdb *redis.Client) *meter {
	t.Helper()
	m := &meter{redistest.NewMeter(t, server.Client(t), nil), server.Client(t)}
	rdb.AddHook(m)
	return m
}

// short checks that no command since the last call has kept the server busy for more than 20 ms, or longer on a slow machine.
func (m *meter) short(t *testing.T) {
	t.Helper()
	most := m.Empty()
	t.Logf("the largest CPU time of each command: %v", most)
	limit := redistest.Paced(t, m.alone, 20*time.Millisecond)
	if len(most) == 0 {
		t.Error("no command was measured")
	}
	for name, took := range most {
		if took > limit {
			t.Errorf("%s kept Redis busy for %v, want at most %v", name, took, limit)
		}
	}
}
