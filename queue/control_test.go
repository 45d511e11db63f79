package queue

import (
	"testing"
	"time"
)

func TestTheShareOfARateIsNotMoreThanTheRate(t *testing.T) {
	for _, row := range []struct {
		per        time.Duration
		partitions int
		want       int64
	}{
		{time.Second, 1, 1000},
		{time.Second, 4, 4000},
		{1900 * time.Microsecond, 1, 2},
		{1900 * time.Microsecond, 10, 19},
		{1900 * time.Microsecond, 3, 6},
		{time.Millisecond + 1, 1, 2},
		{time.Millisecond + 1, 999, 1000},
		{365 * 24 * time.Hour, 999, 365 * 24 * 3600 * 1000 * 999},
		{365*24*time.Hour - 1, 999, 365 * 24 * 3600 * 1000 * 999},
	} {
		if got := perPartition(row.per, row.partitions); got != row.want {
			t.Errorf("perPartition(%v, %d) = %d, want %d", row.per, row.partitions, got, row.want)
		}
	}
}
