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

// Word reports whether a text is one word: 1 to 640 printable ASCII characters that begin with a letter or
// digit (lua/check/values.lua).
func Word(text string) bool {
	return text != "" && len(text) <= 640 && alphanumeric(text[0]) && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
