package clip

import (
	"strings"
	"testing"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for _, row := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aé", 2, "a…"},
		{"aé", 3, "aé"},
		{"日本", 4, "日…"},
		{"日本", 2, "…"},
		{"a\nb", 3, "a\nb"},
		{strings.Repeat("\x80", 9), 5, "\x80…"}, // no text: it loses at most a character's bytes
	} {
		if got := Text(row.text, row.n); got != row.want {
			t.Errorf("Text(%q, %d) = %q, want %q", row.text, row.n, got, row.want)
		}
	}
	if got := Line("first line\nsecond", 5); got != "first…" {
		t.Errorf("Line = %q, want the beginning of the first line", got)
	}
	if got := Bytes("aéb", 2); got != "a" {
		t.Errorf("Bytes = %q, want no part of a character", got)
	}
}
