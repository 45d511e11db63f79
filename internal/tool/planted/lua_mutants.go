package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// luaToken is a token of Lua. Comments are no tokens, so they are never edited.
type luaToken struct {
	kind          byte // n name or keyword, d number, s string, o operator
	text          string
	at, end, line int
}

// luaTokens splits a text into tokens. The text must be valid Lua.
func luaTokens(text string) (tokens []luaToken) {
	line := 1
	for at := 0; at < len(text); {
		end, kind := luaTokenEnd(text, at)
		if kind != ' ' {
			tokens = append(tokens, luaToken{kind, text[at:end], at, end, line})
		}
		line += strings.Count(text[at:end], "\n")
		at = end
	}
	return tokens
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// luaTokenEnd returns where the token at a place ends, and its kind: ' ' for space and comments.
func luaTokenEnd(text string, at int) (end int, kind byte) {
	rest := text[at:]
	c := rest[0]
	switch {
	case c <= ' ':
		return at + 1, ' '
	case strings.HasPrefix(rest, "--"):
		if n := longBracket(rest[2:]); n > 0 {
			return at + 2 + n, ' '
		}
		line, _, _ := strings.Cut(rest, "\n")
		return at + len(line), ' '
	case c == '"' || c == '\'':
		for end = at + 1; text[end] != c; end++ {
			if text[end] == '\\' {
				end++
			}
		}
		return end + 1, 's'
	case c == '[' && longBracket(rest) > 0:
		return at + longBracket(rest), 's'
	case isWord(c):
		kind = 'n'
		for end = at; end < len(text) && (isWord(text[end]) || c <= '9' && text[end] == '.'); end++ {
		}
		if c <= '9' {
			kind = 'd'
		}
		return end, kind
	}
	for _, operator := range []string{"...", "..", "==", "~=", "<=", ">="} {
		if strings.HasPrefix(rest, operator) {
			return at + len(operator), 'o'
		}
	}
	return at + 1, 'o'
}

// longBracket returns the length of a long bracket at the start of a text, 0 if there is none.
func longBracket(text string) int {
	equals := len(text) - len(strings.TrimLeft(strings.TrimPrefix(text, "["), "="))
	if !strings.HasPrefix(text, "[") || !strings.HasPrefix(text[equals:], "[") {
		return 0
	}
	closing := "]" + strings.Repeat("=", equals-1) + "]"
	inside := strings.Index(text, closing)
	if inside < 0 {
		return len(text)
	}
	return inside + len(closing)
}

var (
	shifted = map[string]string{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "~=", "~=": "==", "and": "or", "or": "and"}
	// begins are the keywords with which a statement begins.
	begins = []string{"local", "if", "for", "while", "repeat", "return", "break", "do", "function"}
	// continued are the words after which a statement goes on in the next line.
	continued = []string{"=", "==", "~=", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "^", "..", ",", "(", "[", "{", "and", "or", "not", "return",
		"in", ".", ":", "#", "local", "function", "if", "elseif", "while", "until", "for"}
	keywords = append([]string{"then", "else", "elseif", "end", "until", "and", "or", "not", "nil", "true", "false", "in"}, begins...)
)

// luaCode is a file of Lua with the statements in it.
type luaCode struct {
	tokens []luaToken
	starts []bool // by token: a statement begins
	depth  []int  // by token: how many blocks and brackets are open before it
	match  []int  // by token: the bracket that closes this one
}

func luaCodeOf(text string) *luaCode {
	c := &luaCode{tokens: luaTokens(text)}
	n := len(c.tokens)
	c.starts, c.depth, c.match = make([]bool, n+1), make([]int, n), make([]int, n)
	type opened struct {
		text string
		at   int
	}
	var open []opened
	top := func() string {
		if len(open) == 0 {
			return ""
		}
		return open[len(open)-1].text
	}
	for i, t := range c.tokens {
		c.depth[i] = len(open)
		before := luaToken{text: ";"}
		if i > 0 {
			before = c.tokens[i-1]
		}
		begins := t.kind == 'n' && (slices.Contains(begins, t.text) || !slices.Contains(keywords, t.text))
		after := slices.Contains([]string{"then", "do", "else", "repeat", ";"}, before.text)
		fresh := (t.line > before.line || before.text == "end") && !slices.Contains(continued, before.text)
		inside := top() == "(" || top() == "[" || top() == "{"
		c.starts[i] = c.starts[i] || begins && !inside && (after || fresh) && before.text != "."
		switch t.text {
		case "(", "[", "{", "function", "if", "for", "while", "repeat":
			if t.kind == 's' {
				break
			}
			open = append(open, opened{t.text, i})
		case "do":
			if top() == "for" || top() == "while" {
				open[len(open)-1].text = "do"
			} else {
				open = append(open, opened{"do", i})
			}
		case ")", "]", "}", "end", "until":
			if len(open) == 0 {
				continue
			}
			last := open[len(open)-1]
			c.match[last.at] = i
			open = open[:len(open)-1]
			// The brackets of parameters are those after a function and its name.
			if t.text == ")" && top() == "function" && c.match[open[len(open)-1].at] == 0 {
				c.match[open[len(open)-1].at] = i
				c.starts[i+1] = i+1 < n && c.tokens[i+1].kind == 'n' && c.tokens[i+1].text != "end"
			}
		}
	}
	return c
}

// trap returns an edit that raises an error where the statement of a token is reached.
func (c *luaCode) trap(i int) textEdit {
	for ; i > 0 && !c.starts[i] && c.tokens[i].text != "elseif"; i-- {
	}
	if t := c.tokens[i]; t.text == "elseif" {
		return textEdit{t.end, t.end, ` error("mutant reached", 0) or`}
	}
	return textEdit{c.tokens[i].at, c.tokens[i].at, `error("mutant reached", 0) `}
}

// luaMutants returns all edits of a file.
func luaMutants(file, text string) []mutant {
	c := luaCodeOf(text)
	var list []mutant
	add := func(i int, kind string, e textEdit) {
		list = append(list, mutant{file: file, kind: kind, line: c.tokens[i].line, edit: e, trap: c.trap(i)})
	}
	for i, t := range c.tokens {
		switch {
		case t.text == "if" || t.text == "elseif" || t.text == "while":
			end := i + 1
			for c.tokens[end].text != "then" && c.tokens[end].text != "do" || c.depth[end] != c.depth[i+1] {
				end++
			}
			from, to := c.tokens[i+1].at, c.tokens[end-1].end
			add(i+1, "negate", textEdit{from, to, "not (" + text[from:to] + ")"})
		case shifted[t.text] != "" && t.kind != 's':
			kind := "compare"
			if t.kind == 'n' {
				kind = "logic"
			}
			add(i, kind, textEdit{t.at, t.end, shifted[t.text]})
		case t.kind == 'd':
			if n, err := strconv.Atoi(t.text); err == nil {
				add(i, "constant", textEdit{t.at, t.end, fmt.Sprint(n + 1)})
			}
		case c.starts[i] && !slices.Contains(begins, t.text):
			if end, kind := c.dropped(i); kind != "" {
				add(i, kind, textEdit{t.at, c.tokens[end].end, ""})
			}
		}
	}
	return list
}

// dropped returns the last token of a statement that can be left out: a call whose result is not used, or an
// assignment to a field.
func (c *luaCode) dropped(i int) (last int, kind string) {
	j, field := i+1, false
	text := func() string {
		if j < len(c.tokens) && c.tokens[j].kind != 's' {
			return c.tokens[j].text
		}
		return ""
	}
	for call := false; ; {
		switch text() {
		case ".", ":":
			j, field, call = j+2, true, false
			continue
		case "[":
			j, field, call = c.match[j]+1, true, false
			continue
		case "(":
			j, call = c.match[j]+1, true
			continue
		}
		if call {
			return j - 1, "drop call"
		}
		break
	}
	if !field || text() != "=" && text() != "," {
		return 0, ""
	}
	closers := []string{"end", "else", "elseif", "until"}
	for j++; j < len(c.tokens) && (c.depth[j] > c.depth[i] || !c.starts[j] && !slices.Contains(closers, c.tokens[j].text)); j++ {
	}
	return j - 1, "drop assignment"
}
