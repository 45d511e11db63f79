package stages

import (
	"os"
	"testing"
	"time"
)

// Long reports whether tests may take minutes (CURFEW_LONG=1, which make long sets).
func Long() bool { return os.Getenv("CURFEW_LONG") != "" }

// Times returns short with -short, long with CURFEW_LONG, and usual otherwise.
func Times(short, usual, long int) int {
	switch {
	case Long():
		return long
	case testing.Short():
		return short
	}
	return usual
}

// Pass waits for a duration. It is only for tests of how long something lasts, or of what
// happens within a time.
func Pass(d time.Duration) { <-time.After(d) }
