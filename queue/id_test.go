package queue

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Four goroutines make a million ids: all differ, and each goroutine's sort in the
// order that it got them.
func TestIDsAreUniqueAndSort(t *testing.T) {
	const makers, each = 4, 250_000
	var g ids
	var group sync.WaitGroup
	made := make([][]string, makers)
	for m := range makers {
		group.Go(func() {
			made[m] = make([]string, each)
			for i := range made[m] {
				made[m][i] = g.next(7, time.Now())
			}
		})
	}
	group.Wait()
	var all []string
	for m := range made {
		if !slices.IsSorted(made[m]) {
			t.Errorf("the ids of goroutine %d do not sort as they were made", m)
		}
		all = append(all, made[m]...)
	}
	slices.Sort(all)
	if distinct := len(slices.Compact(all)); distinct != makers*each {
		t.Errorf("%d of %d ids differ", distinct, makers*each)
	}
}

func TestAnIDTellsItsPartition(t *testing.T) {
	var g ids
	for p := range MaxPartitions {
		id := g.next(p, time.Now())
		if len(id) != 20 {
			t.Fatalf("%s has %d characters, want 20", id, len(id))
		}
		for _, id := range []string{id, id + ".1", id + ".page-1.a_b", id + "!on_timeout"} {
			if got, err := PartitionOf(id); got != p || err != nil {
				t.Fatalf("PartitionOf(%s) = %d, %v, want %d", id, got, err, p)
			}
		}
		if _, err := partitionIn(id, p); !errors.Is(err, ErrInvalid) {
			t.Fatalf("partitionIn(%s, %d) = %v, want ErrInvalid", id, p, err)
		}
	}
	if _, err := PartitionOf("999-0ABC"); !errors.Is(err, ErrInvalid) {
		t.Errorf("PartitionOf of partition 999 = %v, want ErrInvalid", err)
	}
}

// Ids sort by time in the partition, whoever made them, and a clock that goes back
// makes no id that was made before.
func TestIDsSortByTime(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	for _, later := range []time.Duration{time.Millisecond, time.Second, 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		var one, other ids
		if a, b := one.next(0, at), other.next(0, at.Add(later)); a >= b {
			t.Errorf("%s is not before %s, which was made %v later", a, b, later)
		}
	}
	var g ids
	first := g.next(0, at)
	if second := g.next(0, at.Add(-time.Hour)); second <= first {
		t.Errorf("%s is not after %s: the clock went back", second, first)
	}
}

// Within a ms the ids count up: the greatest beginning has room for 2^34 of them.
func TestIDsOfOneMsDoNotRunOver(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	g := ids{ms: at.UnixMilli(), random: 1<<34 - 2}
	last := ""
	for range 1000 {
		id := g.next(MaxPartitions-1, at)
		if id <= last || len(id) != 20 {
			t.Fatalf("%s comes after %s", id, last)
		}
		last = id
	}
	for range 1000 {
		if r := randomBits(); r>>34&1 != 0 {
			t.Fatalf("randomBits = %b, want bit 34 clear", r)
		}
	}
}

func TestIDsOfTwoProcessesDiffer(t *testing.T) {
	at, seen := time.UnixMilli(1_800_000_000_000), map[string]bool{}
	for range 10_000 {
		var g ids // as if each were a process of its own
		seen[g.next(0, at)] = true
	}
	if len(seen) != 10_000 {
		t.Errorf("%d of 10,000 ids of one ms differ", len(seen))
	}
}

func TestCallsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100_000 {
		seen[NewCall()] = true
	}
	if len(seen) != 100_000 {
		t.Errorf("%d of 100,000 calls differ", len(seen))
	}
	if call := NewCall(); len(call) != 12 || strings.Trim(call, alphabet) != "" {
		t.Errorf("NewCall = %q", call)
	}
}
