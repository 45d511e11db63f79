package races

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // it tells each connection that these tests cut
	if role := os.Getenv(roleVariable); role != "" {
		playChild(role)
		return
	}
	redistest.Main(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// long is what a count is multiplied by where there is time.
func long(n int) int {
	if os.Getenv("CURFEW_LONG") != "" {
		return 10 * n
	}
	return n
}
