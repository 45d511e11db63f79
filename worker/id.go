package worker

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
)

// newID returns prefix-host-process-random. It has only characters that are safe in a key, and begins
// with a letter or digit: Redis accepts no other id.
func newID(prefix string) string {
	host, _ := os.Hostname()
	parts := []string{keySafe(host), strconv.Itoa(os.Getpid()), strings.ToLower(rand.Text()[:10])}
	if prefix != "" {
		parts = append([]string{keySafe(prefix)}, parts...)
	}
	return strings.TrimLeft(strings.Join(parts, "-"), "._-")
}

// keySafe replaces each unsafe character with _, and cuts s to 64 characters.
func keySafe(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 64)]
}
