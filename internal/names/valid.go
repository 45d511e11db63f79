package names

import "strings"

// Valid tells whether a name has 1 to 128 letters and digits, and characters of more behind
// the first.
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
