package faults

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(4) // they wait more than they compute
	harness.Main(m, play)
}
