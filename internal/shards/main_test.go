package shards

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // it tells each connection that these tests cut
	redistest.Main(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// kills is how many masters a test kills.
func kills() int {
	if os.Getenv("CURFEW_LONG") != "" {
		return 20
	}
	return 1
}
