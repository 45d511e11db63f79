package worker

import (
	"testing"
	"time"
)

// DrainFor lets workers take no tasks for at most d before one runs alone.
func DrainFor(t *testing.T, d time.Duration) {
	before := drainLimit
	drainLimit = d
	t.Cleanup(func() { drainLimit = before })
}
