package app

import (
	"cmp"
	"iter"
	"strings"
	"time"
	"unicode"
)

// All returns a list as List.Print takes it.
func All[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Plain returns a text in one line, without characters that could control a terminal.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

// OrDash returns a text, or - if it is empty.
func OrDash(text string) string { return cmp.Or(text, "-") }

// InstantText returns an instant for people, "" for the zero instant.
func InstantText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}
