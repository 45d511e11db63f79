package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// BenchmarkCall measures a call that ends at once, without and with an observer.
func BenchmarkCall(b *testing.B) {
	q := queuetest.Open(b, redistest.Embedded(b).Client(), queue.Config{})
	ended, cancel := context.WithCancel(b.Context())
	cancel()
	call := func(b *testing.B) {
		for b.Loop() {
			q.Engine().Call(ended, 0, "read", "0-x")
		}
	}
	b.Run("without", call)
	q.Engine().Observe(engine.Observer{Called: func(context.Context, int, string, time.Duration, error) {}})
	b.Run("with", call)
}
