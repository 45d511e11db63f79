// Package pages reads the documents of the repository, for the tests that check them.
package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Page is a document.
type Page struct {
	Path string // from the top of the repository, with slashes
	Text string
}

// A Block is a block of code in a page.
type Block struct {
	Language string // what stands behind the opening ```
	Line     int    // of the first line of code, from 1
	Code     string
}

// All returns the documents of the repository with this top folder: every *.md but CHANGELOG.md, which stays as it was written.
func All(top string) (all []Page, err error) {
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(top, path)
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if name == ".git" || entry.Name() == "node_modules" || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".md" || name == "CHANGELOG.md" {
			return nil
		}
		page, err := Read(top, name)
		all = append(all, page)
		return err
	})
	return all, err
}

// Read returns the document with this path.
func Read(top, path string) (Page, error) {
	text, err := os.ReadFile(filepath.Join(top, path))
	return Page{path, string(text)}, err
}

// Blocks returns the blocks of code that are fenced by ```.
func (p Page) Blocks() (blocks []Block) {
	open := false
	n := 0
	for line := range strings.Lines(p.Text) {
		n++
		fence, is := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "```")
		switch {
		case is && !open:
			open = true
			blocks = append(blocks, Block{Language: fence, Line: n + 1})
		case is:
			open = false
		case open:
			blocks[len(blocks)-1].Code += line
		}
	}
	return blocks
}

// Prose returns the lines of the page by their number from 1, with the lines of code blocks empty.
func (p Page) Prose() []string {
	lines := append([]string{""}, strings.Split(p.Text, "\n")...)
	open := false
	for i, line := range lines {
		fence := strings.HasPrefix(line, "```")
		if fence || open {
			lines[i] = ""
		}
		open = open != fence
	}
	return lines
}

// Program reports whether the block is a complete program in Go.
func (b Block) Program() bool {
	return b.Language == "go" && (strings.HasPrefix(b.Code, "package main\n") || strings.Contains(b.Code, "\npackage main\n"))
}

// Squeeze returns code without indentation and empty lines, so that code that is indented in another way compares as equal.
func Squeeze(code string) string {
	var kept []string
	for line := range strings.Lines(code) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
