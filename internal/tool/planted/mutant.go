package main

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// textEdit replaces the bytes from one offset to another.
type textEdit struct {
	from, to int
	text     string
}

func (e textEdit) apply(text string) string { return text[:e.from] + e.text + text[e.to:] }

// mutant is a generated edit of one file, where a bug has a name and is written by hand.
type mutant struct {
	id         string // the same as long as its line is, wherever in the file that is
	file       string // below the top
	kind       string // negate, compare, logic, constant, drop call or drop assignment
	line       int
	column     int      // in bytes, from 1 on
	edit, trap textEdit // trap raises an error where the statement of the edit is reached; for Lua only
	shown      string   // the edit in one line
}

func (m mutant) lua() bool { return strings.HasSuffix(m.file, ".lua") }

// identify gives the mutants of a file their ids, and the text that shows each.
func identify(list []mutant, text string) {
	seen := map[string]int{}
	for i := range list {
		m := &list[i]
		from := strings.LastIndexByte(text[:m.edit.from], '\n') + 1
		m.column = m.edit.from - from + 1
		to := m.edit.to
		if n := strings.IndexByte(text[to:], '\n'); n >= 0 {
			to += n
		}
		place := fmt.Sprint(m.file, "\n", m.kind, "\n", strings.TrimSpace(text[from:to]), "\n", m.edit.from-from-indent(text[from:to]))
		seen[place]++
		digest := sha1.Sum(fmt.Append(nil, place, "\n", seen[place]))
		m.id = hex.EncodeToString(digest[:])[:10]
		old := text[m.edit.from:m.edit.to]
		switch {
		case m.edit.text == "":
			m.shown = "drop " + oneLine(old)
		case m.kind == "negate":
			m.shown = "negate " + oneLine(old)
		default:
			before, after := []rune(oneLine(text[from:m.edit.from])), []rune(oneLine(text[m.edit.to:to]))
			m.shown = string(before[max(len(before)-60, 0):]) + " [" + old + " → " + m.edit.text + "] " + string(after[:min(len(after), 60)])
		}
	}
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// oneLine returns the beginning of a text without line breaks.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 120 {
		text = string(runes[:119]) + "…"
	}
	return text
}

// luaCandidates returns all mutants of the Lua, by id.
func luaCandidates(tree fs.FS) (map[string]mutant, error) {
	files, err := fs.Glob(tree, "lua/*/*.lua")
	return candidates(tree, files, func(file, text string) ([]mutant, error) { return luaMutants(file, text), nil }, err)
}

// goPackages are the packages whose Go is mutated.
var goPackages = []string{"queue", "reaper", "worker", "agentwait", "events", "httpapi", "inspect", "flow/internal/machine", "typed",
	"internal/expr", "duration", "metrics"}

// goCandidates returns all mutants of the Go, by id.
func goCandidates(tree fs.FS) (map[string]mutant, error) {
	var files []string
	for _, pkg := range goPackages {
		list, err := fs.Glob(tree, pkg+"/*.go")
		if err != nil {
			return nil, err
		}
		files = append(files, slices.DeleteFunc(list, func(file string) bool { return strings.HasSuffix(file, "_test.go") })...)
	}
	return candidates(tree, files, goMutants, nil)
}

func candidates(tree fs.FS, files []string, mutants func(file, text string) ([]mutant, error), err error) (map[string]mutant, error) {
	byID := map[string]mutant{}
	for _, file := range files {
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return nil, err
		}
		list, err := mutants(file, string(text))
		if err != nil {
			return nil, err
		}
		identify(list, string(text))
		for _, m := range list {
			byID[m.id] = m
		}
	}
	return byID, err
}

// draw returns n of the candidates. The same seed draws the same, and a larger n draws more, while their lines are the
// same.
func draw(all map[string]mutant, seed string, n int) []mutant {
	rank := func(m mutant) string {
		digest := sha1.Sum([]byte(seed + " " + m.id))
		return string(digest[:])
	}
	var list []mutant
	for _, m := range all {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b mutant) int { return cmp.Compare(rank(a), rank(b)) })
	return list[:min(n, len(list))]
}
