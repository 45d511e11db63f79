package story

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/testclock"
)

// explain task=a: the sentence, then all other fields of the explanation as JSON.
func (s *stage) explain(w words) []string {
	e, err := inspect.Explain(s.ctx, s.q, long(w.named["task"]))
	if err != nil {
		return []string{rooted(err.Error())}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return []string{err.Error()}
	}
	data, _, _ := strings.Cut(string(text), `,"sentence":`) // printed already
	return []string{rooted(e.String()), "  " + rooted(data) + "}"}
}

var (
	clockReading = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	instant      = regexp.MustCompile(`:\d{13}\b`) // of JSON
	rootOfAStory = regexp.MustCompile(`\b0-`)
)

// rooted replaces ids and instants in a text by the names and the time of the story.
func rooted(text string) string {
	text = clockReading.ReplaceAllStringFunc(text, func(at string) string {
		read, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return fmt.Sprint(err)
		}
		return "@" + read.Sub(testclock.Start).String()
	})
	text = instant.ReplaceAllStringFunc(text, func(at string) string {
		ms, err := strconv.ParseInt(at[1:], 10, 64)
		if err != nil {
			return fmt.Sprint(err)
		}
		return ":@" + time.UnixMilli(ms).Sub(testclock.Start).String()
	})
	return rootOfAStory.ReplaceAllString(text, "")
}
