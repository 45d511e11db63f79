package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/queue"
)

// plainText returns a text of one or more lines without characters that could control a terminal.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '�'
	}, text)
}

// cell returns the start of a body, for a table.
func cell(body []byte) string {
	text := strings.Join(strings.Fields(plainText(string(body[:min(len(body), 400)]))), " ")
	if runes := []rune(text); len(runes) > 60 || len(body) > 400 {
		return string(runes[:min(len(runes), 59)]) + "…"
	}
	return text
}

// shown returns a body for people: it indents JSON, and quotes other bytes. Without whole, it clips
// a long body.
func shown(body []byte, whole bool) string {
	const maxBytes, lines = 4000, 60
	var text string
	var pretty bytes.Buffer
	switch {
	case len(body) <= 1<<20 && json.Indent(&pretty, body, "", "  ") == nil:
		text = plainText(pretty.String())
	case utf8.Valid(body):
		text = plainText(string(body))
	default:
		text = fmt.Sprintf("%q", body)
	}
	clipped := text
	if !whole {
		if list := strings.SplitAfterN(clipped, "\n", lines+1); len(list) > lines {
			clipped = strings.Join(list[:lines], "")
		}
		if len(clipped) > maxBytes {
			clipped = strings.ToValidUTF8(clipped[:maxBytes], "")
		}
	}
	clipped = indented(strings.TrimRight(clipped, "\n"))
	if len(clipped) < len(indented(strings.TrimRight(text, "\n"))) {
		clipped += fmt.Sprintf("\n  … of %s: --full prints all", app.Plural(int64(len(body)), "byte", "bytes"))
	}
	return clipped
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// colourOf returns the colour of a status.
func colourOf(status queue.Status) app.Colour {
	switch status {
	case queue.Completed:
		return app.Green
	case queue.Failed:
		return app.Red
	case queue.Cancelled:
		return app.Yellow
	}
	return ""
}
