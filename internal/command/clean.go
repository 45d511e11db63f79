package command

import (
	"bytes"
	"regexp"
	"strings"
)

// escapes are the sequences with which programs colour their output or move the cursor.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])`)

// unprintable are characters that can control a terminal or change the order of a text.
var unprintable = regexp.MustCompile(`[\p{Cc}\p{Cf}\x{2028}\x{2029}\x{FFFD}]+`)

// clean returns a text that is safe to print on a terminal and to store: UTF-8, without control
// characters except line ends. Of a line that was written over, as by a progress bar, the last
// state is left.
func clean(text []byte) string {
	text = escapes.ReplaceAll(text, nil)
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	lines := strings.Split(strings.ToValidUTF8(string(text), "\uFFFD"), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		lines[i] = strings.TrimRight(unprintable.ReplaceAllString(strings.ReplaceAll(line, "\t", " "), "\uFFFD"), " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}
