package misuse

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(16) // the tests wait more than they compute
	redistest.Main(m)
}
