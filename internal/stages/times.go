package stages

import (
	"os"
	"testing"
	"time"
)

// Long tells whether tests may take minutes (CURFEW_LONG=1, which make long sets).
func Long() bool { return os.Getenv("CURFEW_LONG") != "" }

// Times is a count for the time there is: with -short, as it is, or with CURFEW_LONG.
func Times(short, usual, long int) int {
	switch {
	case Long():
		return long
	case testing.Short():
		return short
	}
	return usual
}

// Pass lets time go by. It is only for where the matter of a test is how long something
// lasts, or what happens within a span.
func Pass(d time.Duration) { <-time.After(d) }
