package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// bug is one mistake that a change of the Lua could make.
type bug struct {
	name     string // the wrong behaviour
	file     string // below lua/
	old, new string // old occurs in it exactly once
	by       string // the story that must find it, "stories/" and its name, or the part of the suite (parts.go)
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
