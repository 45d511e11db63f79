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
		s := shared[int]{keep: always(time.Minute), wait: time.Second, read: func(context.Context) int { reads++; return reads }}
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

// A read that takes longer than its reader waits is not repeated at once, and the reader gets the value of the read before.
func TestTheNewestValueIsReturnedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		s := shared[int]{wait: time.Minute, keep: func(took time.Duration) time.Duration { return 10 * took }, read: func(context.Context) int {
			time.Sleep(2500 * time.Millisecond) // sleeps: the clock of the bubble
			reads++
			return reads
		}}
		seen := map[int]int{}
		for range 100 {
			began := time.Now()
			value, ok := s.newest(began.Add(time.Second))
			// real time: the clock of the bubble
			if took := time.Since(began); took > time.Second {
				t.Fatalf("a call took %v, want at most 1s", took)
			}
			if !ok {
				value = 0
			}
			seen[value]++
			time.Sleep(time.Second) // sleeps: the clock of the bubble
		}
		// 100 calls take from 100 to 200 s. A read takes 2.5 s, and none begins in the 25 s after it.
		if seen[0] != 1 || reads < 3 || reads > 7 || seen[1] < 20 {
			t.Errorf("%d reads, and how often each value was returned: %v, want one read each 28 s, and no value once at first", reads, seen)
		}
		time.Sleep(time.Minute) // sleeps: the clock of the bubble. The last read ends
	})
}
