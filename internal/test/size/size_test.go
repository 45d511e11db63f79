package size_test

import (
	"fmt"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/size"
)

func drawn(t *testing.T, long string) (played map[string]bool) {
	t.Setenv("CURFEW_LONG", long)
	played = map[string]bool{}
	for i := range 1000 {
		name := fmt.Sprintf("TestOf%d/embedded", i)
		if size.Drawn(name, 4) {
			played[name] = true
		}
	}
	return played
}

// A usual run plays about a quarter, and the same quarter again.
func TestADrawIsAQuarterThatIsTheSameAgain(t *testing.T) {
	first, again := drawn(t, ""), drawn(t, "")
	if n := len(first); n < 200 || n > 300 || fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("the first draw has %d of 1000, the second %d", n, len(again))
	}
	if n := len(drawn(t, "1")); n != 1000 {
		t.Errorf("a long run plays %d of 1000", n)
	}
}
