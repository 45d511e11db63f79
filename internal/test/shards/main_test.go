package shards

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, nil) }

// kills returns how many masters a test kills.
func kills() int { return harness.Times(1, 1, 20) }
