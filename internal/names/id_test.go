package names

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// Four goroutines make a million ids. All ids differ, and those of each goroutine sort in the order
// in which it made them.
func TestIDsAreUniqueAndSort(t *testing.T) {
	const makers, each = 4, 250_000
	var g Maker
	var group sync.WaitGroup
	made := make([][]string, makers)
	for m := range makers {
		group.Go(func() {
			made[m] = make([]string, each)
			for i := range made[m] {
				made[m][i] = g.Next(7, time.Now())
			}
		})
	}
	group.Wait()
	var all []string
	for m := range made {
		if !slices.IsSorted(made[m]) {
			t.Errorf("the ids of goroutine %d do not sort in the order in which they were made", m)
		}
		all = append(all, made[m]...)
	}
	slices.Sort(all)
	if distinct := len(slices.Compact(all)); distinct != makers*each {
		t.Errorf("%d of %d ids differ", distinct, makers*each)
	}
}

func TestAnIDContainsItsPartition(t *testing.T) {
	var g Maker
	for p := range MaxPartitions {
		id := g.Next(p, time.Now())
		if len(id) != 20 {
			t.Fatalf("%s has %d characters, want 20", id, len(id))
		}
		for _, id := range []string{id, id + ".1", id + ".page-1.a_b", id + "!on_timeout"} {
			if got, err := PartitionOf(id); got != p || err != nil {
				t.Fatalf("PartitionOf(%s) = %d, %v, want %d", id, got, err, p)
			}
		}
		if _, err := PartitionIn(id, p); !errors.Is(err, refusal.ErrInvalid) {
			t.Fatalf("PartitionIn(%s, %d) = %v, want refusal.ErrInvalid", id, p, err)
		}
	}
	if _, err := PartitionOf("999-0ABC"); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("PartitionOf of partition 999 = %v, want refusal.ErrInvalid", err)
	}
}

// The ids of a partition sort by time, even if different Makers made them. A clock that is set back
// does not cause the same id twice.
func TestIDsSortByTime(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	for _, later := range []time.Duration{time.Millisecond, time.Second, 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		var one, other Maker
		if a, b := one.Next(0, at), other.Next(0, at.Add(later)); a >= b {
			t.Errorf("%s is not before %s, which was made %v later", a, b, later)
		}
	}
	var g Maker
	first := g.Next(0, at)
	if second := g.Next(0, at.Add(-time.Hour)); second <= first {
		t.Errorf("%s is not after %s, after the clock was set back", second, first)
	}
}

// Within a ms the random number counts up. There is room for 2^34 ids after the greatest first number.
func TestIDsOfOneMsDoNotOverflow(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	g := Maker{ms: at.UnixMilli(), random: 1<<34 - 2}
	last := ""
	for range 1000 {
		id := g.Next(MaxPartitions-1, at)
		if id <= last || len(id) != 20 {
			t.Fatalf("%s was made after %s, want a greater id of 20 characters", id, last)
		}
		last = id
	}
	for range 1000 {
		if r := randomBits(); r>>34&1 != 0 {
			t.Fatalf("randomBits = %b, want bit 34 clear", r)
		}
	}
}

func TestAnIDNamesItsOwnerAndItsRoot(t *testing.T) {
	for _, row := range []struct{ id, owner, root string }{
		{"0-a", "", "0-a"},
		{"0-a.1", "0-a", "0-a"},
		{"0-a.1.page-2", "0-a.1", "0-a"},
		{"0-a!success", "", "0-a!success"},
		{"0-a.1!success", "", "0-a.1!success"},
		{"0-a.1!success.2", "0-a.1!success", "0-a.1!success"},
		{"0-a.1!success.2.3", "0-a.1!success.2", "0-a.1!success"},
		{"0-a!success.2!failure", "", "0-a!success.2!failure"},
	} {
		if got := OwnerOf(row.id); got != row.owner {
			t.Errorf("OwnerOf(%s) = %q, want %q", row.id, got, row.owner)
		}
		if got := RootOf(row.id); got != row.root {
			t.Errorf("RootOf(%s) = %q, want %q", row.id, got, row.root)
		}
	}
}

func TestAnIDIsNestedAtMost16Deep(t *testing.T) {
	deep := "0-a" + strings.Repeat(".a", 16)
	if _, err := PartitionOf(deep); err != nil {
		t.Errorf("16 levels: %v, want them accepted", err)
	}
	if _, err := PartitionOf(deep + ".a"); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("17 levels: %v, want ErrInvalid", err)
	}
}

func TestIDsOfTwoProcessesDiffer(t *testing.T) {
	at, seen := time.UnixMilli(1_800_000_000_000), map[string]bool{}
	for range 10_000 {
		var g Maker // like a process of its own
		seen[g.Next(0, at)] = true
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

// FuzzTaskID checks that every text is a valid id or is refused, and that each id that is made is valid.
func FuzzTaskID(f *testing.F) {
	for i, id := range []string{
		"0-01J9ZK3Q8X4M2C7W5T", "998-01J9ZK3Q8X4M2C7", "0-a", "0-a.1", "0-a.page-1.x_y", "0-a!on_timeout", "0-a" + strings.Repeat(".a", 16),
		"0-a" + strings.Repeat(".a", 17), "", "0", "-", "0-", "0-.", "0-a.", "0-a..b", "0--", "00-a", "999-a", "65536-a", "+1-a", "0-a\x00", "0-a\r\n",
		"0-{0}", "0-*", "0-ü", "0-\xff", "curfew:{0}:task:0-a", "0-" + strings.Repeat("x", 600), "f47ac10b-58cc-4372-a567-0e02b2c3d479",
	} {
		f.Add(id, i*37, int64(i)*1e12)
	}
	f.Fuzz(func(t *testing.T, id string, number int, ms int64) {
		p, err := PartitionOf(id)
		switch {
		case err != nil && (!errors.Is(err, refusal.ErrInvalid) || p != 0 || len(err.Error()) > 500):
			t.Errorf("PartitionOf(%q) = %d, %v", id, p, err)
		case err == nil && (p < 0 || p >= MaxPartitions || !strings.HasPrefix(id, strconv.Itoa(p)+"-") || strings.ContainsAny(id, "{}*?[] :\r\n\x00")):
			t.Errorf("PartitionOf(%q) = %d, want an error", id, p)
		}
		number, ms = abs(number)%MaxPartitions, ms&(1<<(5*timeDigits)-1)
		var g Maker
		made := g.Next(number, time.UnixMilli(ms))
		if p, err := PartitionOf(made); p != number || err != nil || len(made) != idLength {
			t.Errorf("PartitionOf(%q) = %d, %v, want %d, for which it was made", made, p, err, number)
		}
		if next := g.Next(number, time.UnixMilli(ms)); next <= made {
			t.Errorf("%q was made after %q, want a greater id", next, made)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }
