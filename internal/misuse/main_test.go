package misuse

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(12) // they wait
	redistest.Main(m)
}
