package shards

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/stages"
)

func TestMain(m *testing.M) { stages.Main(m, nil) }

// kills returns how many masters a test kills.
func kills() int { return stages.Times(1, 1, 20) }
