package faults

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(4) // they wait more than they compute
	stages.Main(m, play)
}
