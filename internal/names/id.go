// Package names makes and parses the ids of tasks, checks the names of kinds, queues and the like, and
// makes the names of workers and reapers. An id is the partition, a dash, and letters and digits. A
// child's id begins with its owner's.
package names

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// alphabet is Crockford's: its characters sort like their values, and no two look alike.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const (
	idLength   = 20 // the partition and its dash included
	timeDigits = 9  // 45 bits of ms: to the year 3084
	maxDepth   = 16
	maxID      = 512 // bytes, without the ! and the event of a hook (lua/task/plan.lua)
	maxHook    = len("!success")
	// MaxPartitions leaves 35 random bits in an id.
	MaxPartitions = 999
)

// Maker makes ids of tasks: the partition, a dash, the ms, and a random number that grows by one
// within a ms. So the ids of one Maker sort in the order in which they were made. It is safe for
// concurrent use.
type Maker struct {
	mu     sync.Mutex
	ms     int64
	random uint64
}

// Next returns a new id in a partition. If now is not after the time of the id before, the new
// id has that time.
func (g *Maker) Next(partition int, now time.Time) string {
	g.mu.Lock()
	if ms := now.UnixMilli(); ms > g.ms {
		g.ms, g.random = ms, randomBits()
	} else {
		g.random++
	}
	ms, random := g.ms, g.random
	g.mu.Unlock()

	id := make([]byte, 0, idLength)
	id = strconv.AppendInt(id, int64(partition), 10)
	id = append(id, '-')
	id = appendBase32(id, uint64(ms), timeDigits)
	return string(appendBase32(id, random, idLength-len(id)))
}

// randomBits returns a random number whose bit 34 is clear. So counting up within a ms does not
// overflow 35 bits, which is what the shortest random part holds.
func randomBits() uint64 {
	var b [8]byte
	rand.Read(b[:])
	r := binary.LittleEndian.Uint64(b[:])
	return r &^ (1 << 34)
}

// appendBase32 appends the last digits of n, most significant first.
func appendBase32(b []byte, n uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		b = append(b, alphabet[n>>(5*i)&31])
	}
	return b
}

// PartitionOf returns the partition of a task's id. It returns an *InvalidError if id is not a valid
// id of a task.
func PartitionOf(id string) (int, error) {
	longest := maxID
	if bang := strings.LastIndexByte(id, '!'); bang > maxID-maxHook && OwnerOf(id) == "" {
		longest += maxHook
	}
	if len(id) > longest {
		why := ""
		if OwnerOf(id) != "" {
			why = ": it begins with the id of its owner, so give the child, or a task above it, a shorter name"
		}
		return 0, refusal.Invalid("id", "%q has %d bytes, the limit is %d%s", refusal.Clip(id), len(id), maxID, why)
	}
	digits, rest, found := strings.Cut(id, "-")
	p, err := strconv.ParseUint(digits, 10, 16)
	if !found || err != nil || p >= MaxPartitions || digits != strconv.FormatUint(p, 10) || !wellFormed(rest) {
		return 0, refusal.Invalid("id", "%q is not a task's id: it is the partition, a dash, letters and digits, like 0-01J9ZK3Q8X4M2C7W5T; "+
			"then for each child a dot and a name of A-Z a-z 0-9 _ - that begins with a letter or digit", refusal.Clip(id))
	}
	if strings.Count(rest, ".") > maxDepth {
		return 0, refusal.Invalid("id", "is nested deeper than %d", maxDepth)
	}
	return int(p), nil
}

// PartitionIn is PartitionOf for a namespace with this number of partitions. It also returns an
// *InvalidError if the namespace does not have the partition of the id.
func PartitionIn(id string, partitions int) (int, error) {
	p, err := PartitionOf(id)
	if err == nil && p >= partitions {
		err = refusal.Invalid("id", "%q is in partition %d, but this namespace has %d partitions: it is the id of another namespace", refusal.Clip(id), p, partitions)
	}
	return p, err
}

// OwnerOf returns the id of a child's owner, or "" for a root task. A hook is a root task, although
// its id begins with the id of another task (lua/store/state.lua).
func OwnerOf(id string) string {
	if at := strings.LastIndexByte(id, '.'); at >= 0 && strings.IndexByte(id[at:], '!') < 0 {
		return id[:at]
	}
	return ""
}

// RootOf returns the id of the root task above a child. For a root task it returns id itself.
func RootOf(id string) string {
	bang := strings.LastIndexByte(id, '!') + 1
	if dot := strings.IndexByte(id[bang:], '.'); dot >= 0 {
		return id[:bang+dot]
	}
	return id
}

// wellFormed reports whether the part of an id after the dash is valid: a root's letters and
// digits, then the names of children, each after a dot.
func wellFormed(rest string) bool {
	if rest == "" {
		return false
	}
	for part := range strings.SplitSeq(rest, ".") {
		if part == "" {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !alphanumeric(c) && (i == 0 || c != '-' && c != '_' && c != '!') {
				return false
			}
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// NewCall returns a new identity for a call. A call with the same identity again is a repeat.
func NewCall() string {
	var b [8]byte
	rand.Read(b[:])
	return string(appendBase32(nil, binary.LittleEndian.Uint64(b[:]), 12))
}

// Valid reports whether a name has 1 to 128 bytes, begins with an ASCII letter or digit, and
// contains only these and the characters of more.
func Valid(name, more string) bool {
	if name == "" || len(name) > 128 || !alphanumeric(name[0]) {
		return false
	}
	for i := range len(name) {
		if !alphanumeric(name[i]) && strings.IndexByte(more, name[i]) < 0 {
			return false
		}
	}
	return true
}

// Word reports whether a text is one word: 1 to 640 printable ASCII characters that begin with a letter or
// digit (lua/check/values.lua).
func Word(text string) bool {
	return text != "" && len(text) <= 640 && alphanumeric(text[0]) && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// CheckWorker refuses an id that a worker cannot have.
func CheckWorker(worker string) error {
	if !Word(worker) {
		return refusal.Invalid("worker", "%q must be one word of up to 640 bytes, in ASCII, that begins with a letter or digit", refusal.Clip(worker))
	}
	return nil
}

// CheckOwner checks that all tasks are children of owner. An empty owner accepts all ids.
func CheckOwner(owner string, ids []string) error {
	for _, id := range ids {
		if owner != "" && OwnerOf(id) != owner {
			return fmt.Errorf("%w: %s", refusal.ErrNotOwner, refusal.Clip(id))
		}
	}
	return nil
}
