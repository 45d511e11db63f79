package names

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/refusal"
)

// maxName is the greatest length of a name in bytes. An id is then up to 390 bytes, so that there is room
// for the names of children.
const maxName = 128

// The first letters of the part of an id after the partition. Ids that are made do not have small letters.
const (
	plain   = "n-" // the name follows as it is
	escaped = "e-" // the name follows with escapes
	hashed  = "h-" // of a child only: a hash of the name follows
)

// Encode returns a name as ids and names of children have it. A name of letters, digits, - and _ follows n-
// as it is. Any other name follows e-, and each byte that is not a letter, a digit or - is _ and two
// hexadecimal digits. So no two names have the same text. Encode returns an *InvalidError for a name
// that is empty or too long.
func Encode(name string) (string, error) {
	if name == "" || len(name) > maxName {
		return "", refusal.Invalid("name", "%q has %d bytes: it must be 1 to %d bytes of any text; hash a longer one", refusal.Clip(name), len(name), maxName)
	}
	if only(name, "-_") {
		return plain + name, nil
	}
	b := []byte(escaped)
	for i := range len(name) {
		if c := name[i]; alphanumeric(c) || c == '-' {
			b = append(b, c)
		} else {
			b = append(b, '_', hex[c>>4], hex[c&15])
		}
	}
	return string(b), nil
}

// EncodeChild is Encode for a child of owner. If the child's id would be too long, h- and the first 32 hexadecimal digits of the
// name's SHA-256 take the place of the name.
func EncodeChild(owner, name string) (string, error) {
	text, err := Encode(name)
	if err == nil && len(owner)+len(".")+len(text) > maxID {
		sum := sha256.Sum256([]byte(name))
		text = fmt.Sprintf("%s%x", hashed, sum[:16])
	}
	return text, err
}

const hex = "0123456789abcdef"

// only reports whether a text has only letters, digits and the characters of more.
func only(text, more string) bool {
	for i := range len(text) {
		if !alphanumeric(text[i]) && strings.IndexByte(more, text[i]) < 0 {
			return false
		}
	}
	return true
}

// Named returns the id of the root task with a name. Its partition is that of an idempotency key with the same
// text.
func Named(name string, partitions int) (string, error) {
	text, err := Encode(name)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(PartitionOfKey(name, partitions)) + "-" + text, nil
}

// PartitionOfKey returns the partition of a name or an idempotency key. All programs compute the same one
// (lua/named/task.lua).
func PartitionOfKey(key string, partitions int) int {
	return int(crc32.ChecksumIEEE([]byte(key)) % uint32(partitions))
}

// NameOf returns the name of a root task from its id. It returns "" if the task has no name, and for a child
// or hook.
func NameOf(id string) string {
	_, text, _ := strings.Cut(id, "-")
	name := decode(text)
	if again, err := Encode(name); err != nil || again != text {
		return ""
	}
	return name
}

func decode(text string) string {
	if name, ok := strings.CutPrefix(text, plain); ok {
		return name
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(text, escaped), "_")
	name := []byte(first)
	for part := range strings.SplitSeq(rest, "_") {
		if len(part) < 2 {
			break
		}
		c, _ := strconv.ParseUint(part[:2], 16, 8)
		name = append(append(name, byte(c)), part[2:]...)
	}
	return string(name)
}
