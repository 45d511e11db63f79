// Package clip shortens texts that are shown or stored beside something else: values in errors, lines of a table, descriptions.
package clip

import (
	"strings"
	"unicode/utf8"
)

// Text returns a text of at most n bytes as it is. Of a longer one it returns the beginning, of at most n bytes, and an ellipsis. It
// cuts between two characters.
func Text(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return Bytes(text, n) + "…"
}

// Line is Text for the first line of a text.
func Line(text string, n int) string {
	text, _, _ = strings.Cut(text, "\n")
	return Text(text, n)
}

// Bytes returns the beginning of a text: at most n bytes that end between two characters.
func Bytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	end := n
	for end > max(n-utf8.UTFMax, 0) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
