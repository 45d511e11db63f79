package misuse

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(16) // they wait
	redistest.Main(m)
}
