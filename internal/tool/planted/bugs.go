package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bug is one mistake that a change of the Lua could make.
type bug struct {
	name     string // the wrong behaviour
	file     string // below lua/
	old, new string // old occurs in it exactly once
	by       string // the story that must find it, "stories/" and its name, or the part of the suite (parts.go)
}

//go:embed testdata/bugs/*.txt
var tables embed.FS

// readBugs returns the bugs of each table, by the names of the tables.
func readBugs(tables fs.FS) (kinds [][]bug, err error) {
	files, err := fs.Glob(tables, "testdata/bugs/*.txt")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(tables, file)
		if err != nil {
			return nil, err
		}
		kind, err := parseBugs(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// parseBugs reads the paragraphs of a table; doc.go describes them.
func parseBugs(text string) (list []bug, err error) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(paragraph, "#") {
			continue
		}
		lines := strings.Split(paragraph, "\n")
		b := bug{name: lines[0]}
		var old, new []string
		for _, line := range lines[1:] {
			switch {
			case strings.HasPrefix(line, "-"):
				old = append(old, line[1:])
			case strings.HasPrefix(line, "+"):
				new = append(new, line[1:])
			default:
				b.file, b.by, _ = strings.Cut(strings.TrimPrefix(line, "in "), ", found by ")
			}
		}
		if b.old, b.new = strings.Join(old, "\n"), strings.Join(new, "\n"); b.old == "" || b.file == "" || b.by == "" {
			return nil, fmt.Errorf("bug %q: it needs a line `in file, found by story`, and lines that begin with -", b.name)
		}
		list = append(list, b)
	}
	return list, nil
}

// choose returns the bugs with a name, or all, perhaps with another part that must find them.
func choose(only, by string) ([]bug, error) {
	kinds, err := readBugs(tables)
	if err != nil {
		return nil, err
	}
	var chosen []bug
	for _, b := range slices.Concat(kinds...) {
		if only != "" && b.name != only {
			continue
		}
		if by != "" {
			b.by = by
		}
		chosen = append(chosen, b)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("there is no bug %q: -list prints the names", only)
	}
	return chosen, nil
}

// edit returns a text in which old is replaced. old must occur exactly once.
func edit(name, text, old, new string) (string, error) {
	if n := strings.Count(text, old); n != 1 {
		return "", fmt.Errorf("%s: the text to replace occurs %d times, not once; update the bug: %q", name, n, old)
	}
	return strings.Replace(text, old, new, 1), nil
}

// plant returns the text of a bug's file with the bug in it.
func (b bug) plant(lua fs.FS) (string, error) {
	text, err := fs.ReadFile(lua, b.file)
	if err != nil {
		return "", fmt.Errorf("bug %q: %w", b.name, err)
	}
	edited, err := edit("lua/"+b.file, string(text), b.old, b.new)
	if err != nil {
		return "", fmt.Errorf("bug %q: %w", b.name, err)
	}
	return edited, nil
}

// copyWith writes the Lua with a bug into a new folder. The zero bug changes nothing.
func copyWith(b bug, lua fs.FS, into string) error {
	if err := os.CopyFS(into, lua); err != nil || b.file == "" {
		return err
	}
	text, err := b.plant(lua)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(into, b.file), []byte(text), 0o644)
}
