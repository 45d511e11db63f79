package metrics

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A value is used again although it is older than a read may take.
func TestAValueIsKeptForLongerThanAReadMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		s := shared[int]{keep: time.Minute, wait: time.Second, read: func(context.Context) int { reads++; return reads }}
		for i := range 100 {
			if value, ok := s.get(); !ok || value != 1 {
				t.Fatalf("call %d: %d %t, want the first value", i, value, ok)
			}
			time.Sleep(500 * time.Millisecond) // sleeps: the clock of the bubble
		}
		time.Sleep(20 * time.Second) // sleeps: the clock of the bubble
		if value, ok := s.get(); !ok || value != 2 {
			t.Errorf("after a minute: %d %t", value, ok)
		}
	})
}
