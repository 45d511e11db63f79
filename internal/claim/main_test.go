package claim_test

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
