package harness

import (
	"time"

	"github.com/curfew-dev/curfew/internal/test/size"
)

// Long is size.Long.
func Long() bool { return size.Long() }

// Times is size.Times.
func Times(short, usual, long int) int { return size.Times(short, usual, long) }

// Pass waits for a duration. It is only for tests of how long something lasts, or of what
// happens within a time.
func Pass(d time.Duration) { <-time.After(d) }
