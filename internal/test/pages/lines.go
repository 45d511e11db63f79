package pages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Line is a command line that calls a program of this repository.
type Line struct {
	Place string   // file:line
	Words []string // the first one is the program
	// InText means that the line is in the text of a page, and need not have its arguments: `curfew explain ID...`.
	InText bool
}

// Lines returns the command lines of the documents that call a program of the folder cmd: in blocks of console and sh, and in text.
func Lines(top, program string) (lines []Line, err error) {
	inText := regexp.MustCompile("`(?:go run \\./cmd/)?(" + program + " [a-z][^`]*)`")
	all, err := All(top)
	for _, page := range all {
		for _, b := range page.Blocks() {
			if b.Language != "console" && b.Language != "sh" {
				continue
			}
			for _, words := range b.Commands() {
				if words = called(words, program); words != nil {
					lines = append(lines, Line{fmt.Sprintf("%s:%d", page.Path, b.Line), words, false})
				}
			}
		}
		for n, line := range page.Prose() {
			for _, m := range inText.FindAllStringSubmatch(line, -1) {
				one := Block{Language: "sh", Code: strings.ReplaceAll(m[1], `\|`, "|") + "\n"}
				lines = append(lines, Line{fmt.Sprintf("%s:%d", page.Path, n), one.Commands()[0], true})
			}
		}
	}
	return lines, err
}

// called returns the words of a command line from the name of a program on, nil if it calls another one.
func called(words []string, program string) []string {
	words = slices.Clone(words)
	if len(words) > 2 && words[0] == "go" && words[1] == "run" {
		words = words[2:]
	}
	for len(words) > 1 && strings.Contains(words[0], "=") { // NAME=value curfew
		words = words[1:]
	}
	if words[0] == "./cmd/"+program {
		words[0] = program
	}
	if words[0] != program {
		return nil
	}
	return words
}
