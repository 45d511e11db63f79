package names

import (
	"errors"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/refusal"
)

func TestANameIsReadableInItsID(t *testing.T) {
	for _, row := range []struct{ name, id string }{
		{"order-17", "0-n-order-17"},
		{"Order_17", "0-n-Order_17"},
		{"17", "0-n-17"},
		{"-", "0-n--"},
		{"_2f", "0-n-_2f"},
		{"orders/17", "0-e-orders_2f17"},
		{"orders/_2f", "0-e-orders_2f_5f2f"},
		{"a.b", "0-e-a_2eb"},
		{"café", "0-e-caf_c3_a9"},
		{" ", "0-e-_20"},
		{"\x00\xff", "0-e-_00_ff"},
		{strings.Repeat("x", 128), "0-n-" + strings.Repeat("x", 128)},
		{strings.Repeat(".", 128), "0-e-" + strings.Repeat("_2e", 128)},
	} {
		id, err := Named(row.name, 1)
		if id != row.id || err != nil {
			t.Errorf("Named(%q) = %q, %v, want %q", row.name, id, err, row.id)
		}
		if name := NameOf(id); name != row.name {
			t.Errorf("NameOf(%q) = %q, want %q", id, name, row.name)
		}
		if _, err := PartitionOf(id + ".s-" + strings.Repeat("x", 100)); err != nil {
			t.Errorf("the id of a signal: %v", err)
		}
	}
}

// An id that was possible without the hash is as it was, and a child with any name has an id beside any other child's.
func TestTheIDOfAChildWithALongName(t *testing.T) {
	name := strings.Repeat("я", 64)
	long := "0-e-" + strings.Repeat("_d1_8f", 64)
	for _, row := range []struct{ owner, name, want string }{
		{"0-01J9ZK3Q8X4M2C7W5T", name, "e-" + strings.Repeat("_d1_8f", 64)},
		{"0-" + strings.Repeat("x", 509-386), name, "e-" + strings.Repeat("_d1_8f", 64)}, // 512 bytes in all
		{"0-" + strings.Repeat("x", 510-386), name, "h-bb1ecb4b487518f4e6b53ab0f31355c4"},
		{long, name, "h-bb1ecb4b487518f4e6b53ab0f31355c4"},
		{long, strings.Repeat("x", 128), ""},
		{long, strings.Repeat("x", 117), "n-" + strings.Repeat("x", 117)},
	} {
		text, err := EncodeChild(row.owner, row.name)
		if _, bad := PartitionOf(row.owner + "." + text); err != nil || bad != nil || row.want != "" && text != row.want {
			t.Errorf("EncodeChild(%d bytes, %q) = %q, %v, and the id: %v; want %q", len(row.owner), row.name, text, err, bad, row.want)
		}
	}
	one, _ := EncodeChild(long, name)
	if other, _ := EncodeChild(long, name[2:]+"б"); one == other {
		t.Errorf("two names have the same id: %s", one)
	}
	if text, err := EncodeChild(long, name+"x"); err == nil {
		t.Errorf("EncodeChild of a name of 129 bytes = %q", text)
	}
	_, err := PartitionOf(long + ".s-" + strings.Repeat("x", 128))
	if err == nil || !strings.Contains(err.Error(), "limit is 512: it begins with the id of its owner, so give the child, or a task above it, a shorter name") {
		t.Errorf("the id of a long signal: %v", err)
	}
}

func TestANameIsNotEmptyAndNotLong(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("x", 129), strings.Repeat("x", 1<<20)} {
		if id, err := Named(name, 1); id != "" || !errors.Is(err, refusal.ErrInvalid) || len(err.Error()) > 300 {
			t.Errorf("Named of %d bytes = %q, %v, want it refused", len(name), id, err)
		}
	}
}

func TestOnlyTheIDOfANamedRootHasAName(t *testing.T) {
	for _, id := range []string{"", "0", "0-", "0-01J9ZK3Q8X4M2C7W5T", "0-n-", "0-e-", "0-n-a.1", "0-n-a!success", "0-e-plain", "0-e-a_2F", "0-e-a_2",
		"0-e-a_zz", "0-e-a_61", "0-e-_", "0-s-a", "n-a"} {
		if name := NameOf(id); name != "" {
			t.Errorf("NameOf(%q) = %q, want none", id, name)
		}
	}
}

// FuzzNamed checks that each name has an id of its own that is valid.
func FuzzNamed(f *testing.F) {
	for i, name := range []string{"order-17", "a_b", "a/b", "_2f", "/", "ü", "\xff", "n-a", "e-a", " "} {
		f.Add(name, i*7)
	}
	f.Fuzz(func(t *testing.T, name string, n int) {
		partitions := abs(n)%MaxPartitions + 1
		id, err := Named(name, partitions)
		if err != nil {
			if name != "" && len(name) <= 128 {
				t.Errorf("Named(%q) = %v", name, err)
			}
			return
		}
		p, err := PartitionIn(id, partitions)
		if err != nil || p != PartitionOfKey(name, partitions) {
			t.Errorf("PartitionIn(%q, %d) = %d, %v", id, partitions, p, err)
		}
		if got := NameOf(id); got != name {
			t.Errorf("NameOf(%q) = %q, want %q", id, got, name)
		}
	})
}
