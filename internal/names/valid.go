package names

import "strings"

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
