// Package names makes and reads the ids of tasks, and says which names kinds, queues and the like may
// have. An id is the partition, a dash, and letters and digits; a child's begins with its owner's.
package names

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// Crockford's alphabet: sorts as its values do, and has no letter that looks like another.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const (
	idLength   = 20 // the partition and its dash included
	timeDigits = 9  // 45 bits of ms: to the year 3084
	maxDepth   = 16
	// MaxPartitions leaves 35 random bits in an id.
	MaxPartitions = 999
)

// Maker makes task ids: the partition, a dash, the ms, and a random number that
// grows by one within a ms, so that the ids of one process sort in the order made.
type Maker struct {
	mu     sync.Mutex
	ms     int64
	random uint64
}

// Next is a new id of a partition.
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

// randomBits leaves the top bit of 35 clear, so that counting up within a ms does
// not run over even in the shortest id.
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

// PartitionOf reads the partition off a task's id. The error says what is wrong
// with an id that is not one of ours.
func PartitionOf(id string) (int, error) {
	digits, rest, found := strings.Cut(id, "-")
	p, err := strconv.ParseUint(digits, 10, 16)
	if !found || err != nil || p >= MaxPartitions || digits != strconv.FormatUint(p, 10) || !wellFormed(rest) {
		return 0, refusal.Invalid("id", "%q is not a task's id: it is the partition, a dash, letters and digits, like 0-01J9ZK3Q8X4M2C7W5T", refusal.Clip(id))
	}
	if strings.Count(rest, ".") > maxDepth {
		return 0, refusal.Invalid("id", "is nested deeper than %d", maxDepth)
	}
	return int(p), nil
}

// PartitionIn is PartitionOf in a namespace of so many partitions.
func PartitionIn(id string, partitions int) (int, error) {
	p, err := PartitionOf(id)
	if err == nil && p >= partitions {
		err = refusal.Invalid("id", "%q is of partition %d, and this namespace has %d: it is another namespace's", refusal.Clip(id), p, partitions)
	}
	return p, err
}

// OwnerOf is the id of the task that a child belongs to, "" for a root task. A hook is a
// root task whatever its id begins with (lua/task/owner.lua).
func OwnerOf(id string) string {
	if at := strings.LastIndexByte(id, '.'); at >= 0 && strings.IndexByte(id[at:], '!') < 0 {
		return id[:at]
	}
	return ""
}

// RootOf is the root of the tree that a child belongs to. A hook is the root of its own.
func RootOf(id string) string {
	bang := strings.LastIndexByte(id, '!') + 1
	if dot := strings.IndexByte(id[bang:], '.'); dot >= 0 {
		return id[:bang+dot]
	}
	return id
}

// wellFormed accepts what follows the dash: a root's digits, then children.
func wellFormed(rest string) bool {
	if rest == "" || len(rest) > 500 {
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

// NewCall makes the identity of a call: the same one again is a repeat.
func NewCall() string {
	var b [8]byte
	rand.Read(b[:])
	return string(appendBase32(nil, binary.LittleEndian.Uint64(b[:]), 12))
}
