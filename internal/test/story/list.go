package story

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/test/testclock"
)

// list dead of=default n=10 after=5@b kind=k prints the names of the tasks with their status and score, and then what a
// program needs for the next page. after is the score and the name of an entry.
func (s *stage) list(w words) []string {
	after, id, _ := strings.Cut(w.named["after"], "@")
	args := []any{w.plain[0], w.named["of"], after, long(id), w.named["n"]}
	if owner := w.named["of"]; w.plain[0] == "children" {
		args[1] = long(owner)
	}
	for _, name := range slices.Sorted(maps.Keys(w.named)) {
		switch value := w.named[name]; name {
		case "of", "after", "n":
		case "owner":
			args = append(args, name, long(value))
		default:
			args = append(args, name, value)
		}
	}
	reply, err := s.call("list", args...)
	if err != nil {
		return []string{refusal(err)}
	}
	answers := reply.([]any)
	var lines []string
	for _, answer := range answers[6:] {
		row := answer.([]any)
		fields := map[string]string{}
		for i := 3; i+1 < len(row); i += 2 {
			fields[fmt.Sprint(row[i])] = fmt.Sprint(row[i+1])
		}
		text := fmt.Sprintf("%s %s %s", short(fmt.Sprint(row[0])), fields["status"], score(row[1]))
		for _, name := range []string{"result", "error"} {
			if value, there := fields[name]; there {
				text += fmt.Sprintf(" %s=%q", name, value)
			}
		}
		if row[2] == int64(1) {
			text += " overdue"
		}
		lines = append(lines, text)
	}
	about := fmt.Sprintf("looked=%v more=%v broken=%v", answers[1], answers[4], answers[5])
	if answers[3] != "" {
		about += fmt.Sprintf(" last=%s@%s", score(answers[2]), short(fmt.Sprint(answers[3])))
	}
	return append(lines, about)
}

// score formats a score: an instant as the time since the story began, a place in line as it is.
func score(word any) string {
	n, _ := strconv.ParseFloat(fmt.Sprint(word), 64)
	text := strconv.FormatFloat(n, 'f', -1, 64)
	if n > 2*float64(testclock.Start.UnixMilli()) {
		return text
	}
	return since(text)
}
