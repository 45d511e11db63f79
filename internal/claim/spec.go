package claim

import (
	"strconv"
	"strings"
)

// spec is the parsed spec of a task: the part of its record that never changes (lua/store/record.lua
// describes the form).
type spec struct {
	kind, queue, created string
	deadline             string            // "-" for none
	final                string            // the earliest deadline of the task and its ancestors
	fields               map[string]string // the fields after the first line; nil if there are none
	payload              string
}

// parseSpec parses the text of a spec. ok is false if it is malformed.
func parseSpec(text string) (s spec, ok bool) {
	first, rest, ok := strings.Cut(text, "\n")
	w := [5]string{}
	for i := range w {
		var separated bool
		if w[i], first, separated = strings.Cut(first, " "); separated != (i < 4) || w[i] == "" {
			return spec{}, false
		}
	}
	s = spec{kind: w[0], queue: w[1], created: w[2], deadline: w[3], final: w[4]}
	if s.final == "-" {
		s.final = s.deadline
	}
	if payload, plain := strings.CutPrefix(rest, "\n"); plain && ok {
		s.payload = payload
		return s, true
	}
	head, body, terminated := strings.Cut(rest, "\n\n")
	s.fields, s.payload = map[string]string{}, body
	for line := range strings.SplitSeq(head, "\n") {
		at := strings.IndexAny(line, "=:")
		if at < 0 {
			return spec{}, false
		}
		value := line[at+1:]
		if line[at] == ':' { // the length of a text that follows after the lines
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > len(s.payload) {
				return spec{}, false
			}
			value, s.payload = s.payload[:n], s.payload[n:]
		}
		s.fields[line[:at]] = value
	}
	return s, ok && terminated
}
