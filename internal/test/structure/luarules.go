package structure

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// onlyIn returns a rule that finds a command in any Lua file but those given.
func onlyIn(command, file string, others ...string) func(fs.FS) ([]string, error) {
	return func(fsys fs.FS) ([]string, error) {
		var found []string
		err := each(fsys, ".lua", func(name string, text []byte) error {
			for _, t := range lex(string(text)) {
				if name != file && !slices.Contains(others, name) && t.kind == quoted && strings.EqualFold(t.text, command) {
					found = append(found, fmt.Sprintf("%s:%d: %s: only %s may run it", name, t.line, command, file))
				}
			}
			return nil
		})
		return found, err
	}
}

// lexeme is a string, a word or a sign of Lua. Comments are left out.
type lexeme struct {
	kind kind
	text string // of a string, the text between its quotes
	line int
}

type kind int

const (
	quoted kind = iota + 1
	word
	sign
)

// lex splits Lua into lexemes, well enough to distinguish code, strings and comments.
func lex(text string) []lexeme {
	var tokens []lexeme
	line := 1
	take := func(n int) string {
		taken := text[:n]
		line += strings.Count(taken, "\n")
		text = text[n:]
		return taken
	}
	for text != "" {
		at := line
		switch c := text[0]; {
		case strings.HasPrefix(text, "--[["):
			take(long(text, 4))
		case strings.HasPrefix(text, "--"):
			take(until(text, "\n"))
		case strings.HasPrefix(text, "[["):
			s := take(long(text, 2))
			tokens = append(tokens, lexeme{quoted, strings.TrimSuffix(s[2:], "]]"), at})
		case c == '"' || c == '\'':
			n := 1
			for n < len(text) && text[n] != c && text[n] != '\n' {
				if text[n] == '\\' {
					n++
				}
				n++
			}
			s := take(min(n+1, len(text)))
			tokens = append(tokens, lexeme{quoted, strings.Trim(s, `"'`), at})
		case wordly(c):
			n := 1
			for n < len(text) && wordly(text[n]) {
				n++
			}
			tokens = append(tokens, lexeme{word, take(n), at})
		case strings.HasPrefix(text, ".."):
			tokens = append(tokens, lexeme{sign, take(2), at})
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			take(1)
		default:
			tokens = append(tokens, lexeme{sign, take(1), at})
		}
	}
	return tokens
}

// long returns the length of a text in long brackets. Its opening bracket has n bytes.
func long(text string, n int) int {
	if end := strings.Index(text[n:], "]]"); end >= 0 {
		return n + end + 2
	}
	return len(text)
}

func until(text, end string) int {
	if n := strings.Index(text, end); n >= 0 {
		return n
	}
	return len(text)
}

func wordly(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
