package faults

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
	redistest.AtOnce(4) // they wait more than they compute
	redistest.Main(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// times is a count for the time there is: -short, as it is, or CURFEW_LONG.
func times(short, usual, much int) int {
	switch {
	case long():
		return much
	case testing.Short():
		return short
	}
	return usual
}

func long() bool { return os.Getenv("CURFEW_LONG") != "" }
