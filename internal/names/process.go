package names

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
)

// maxPart is how many characters of a part OfProcess keeps.
const maxPart = 64

// OfProcess returns a new name for something that runs in this process: the parts, the number of the
// process, and a random text, with dashes between them. No two calls return the same name. Redis accepts
// the name, whatever the parts are: it has only letters, digits and . _ -, and begins with a letter or digit.
func OfProcess(parts ...string) string {
	var name []string
	for _, part := range parts {
		if part = word(part); part != "" {
			name = append(name, part)
		}
	}
	name = append(name, strconv.Itoa(os.Getpid()), strings.ToLower(rand.Text()[:10]))
	return strings.Join(name, "-")
}

// word replaces each character that a name cannot have with _, cuts s to maxPart characters, and
// removes what a name cannot begin with.
func word(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && alphanumeric(byte(r)) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, s)
	return strings.TrimLeft(s[:min(len(s), maxPart)], "._-")
}
