package vocabulary_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/internal/vocabulary"
)

// page returns the text of a page of the reference.
func page(t *testing.T, name string) string {
	t.Helper()
	return file(t, filepath.Join("../../docs/reference", name))
}

func file(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var quoted = regexp.MustCompile("`([a-z_0-9]+)`")

// docs/reference/names.md has a row for each type, with all names of that type.
func TestThePageHasAllNames(t *testing.T) {
	text := page(t, "names.md")
	for _, kind := range []vocabulary.Type{vocabulary.Text, vocabulary.Number, vocabulary.Instant, vocabulary.Span, vocabulary.Flag, vocabulary.List, vocabulary.Object} {
		_, row, found := strings.Cut(text, fmt.Sprintf("\n**%s**: ", kind))
		row, _, _ = strings.Cut(row, "\n\n")
		var got []string
		for _, name := range quoted.FindAllStringSubmatch(row, -1) {
			got = append(got, name[1])
		}
		if want := vocabulary.Names(kind); !found || !slices.Equal(got, want) {
			t.Errorf("the names of %s on the page are\n%q, want\n`%s`", kind, got, strings.Join(want, "`, `"))
		}
	}
}

// The fields of records have names and types of the vocabulary.
func TestRecordsUseTheVocabulary(t *testing.T) {
	types := map[string]vocabulary.Type{"number": vocabulary.Number, "instant": vocabulary.Instant, "instants": vocabulary.Instant, "ms": vocabulary.Span, "1": vocabulary.Number}
	fields := 0
	_, text, _ := strings.Cut(page(t, "keys.md"), "## The record of a task")
	text, _, _ = strings.Cut(text, "## Figures")
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		want := cmp.Or(types[strings.TrimSpace(cells[2])], vocabulary.Text)
		if strings.ContainsAny(cells[2], "0123456789") {
			want = vocabulary.Number // a range
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			fields++
			if got, known := vocabulary.Of(name[1]); !known || got != want {
				t.Errorf("%s is a %s, %v in the vocabulary, and a%s on the page", name[1], got, known, cells[2])
			}
		}
	}
	if fields < 60 {
		t.Errorf("the page has %d fields", fields)
	}
}

// So do the lines of JSON in all pages.
func TestExamplesOfJSONUseTheVocabulary(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range pages {
		for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(file(t, name), -1) {
			if strings.Count(block[1], "\n") > 1 && json.Valid([]byte(block[1])) {
				continue // a definition of a flow, whose names are fields of definitions
			}
			for line := range strings.Lines(block[1]) {
				var object map[string]any
				if err := json.Unmarshal([]byte(line), &object); err != nil {
					t.Errorf("%s: %v: %s", name, err, line)
				} else if err := vocabulary.CheckJSON(object); err != nil {
					t.Errorf("%s: %v: %s", name, err, line)
				}
				checked++
			}
		}
	}
	if checked < 10 {
		t.Errorf("there are %d lines of JSON in the pages", checked)
	}
}

// The further fields of events are in the vocabulary.
func TestEventsUseTheVocabulary(t *testing.T) {
	text, _, _ := strings.Cut(page(t, "events.md"), "### In the stream")
	fields := 0
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		column := map[int]int{6: 4, 5: 1, 4: 1}[len(cells)]
		if column == 0 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[column], -1) {
			fields++
			if _, known := vocabulary.Of(name[1]); !known {
				t.Errorf("%s is not in the vocabulary: %s", name[1], line)
			}
		}
	}
	if fields < 50 {
		t.Errorf("the page has %d fields", fields)
	}
}

// So do the arguments of the functions. A duration can have its unit in its value instead of its name.
func TestArgumentsUseTheVocabulary(t *testing.T) {
	files, err := filepath.Glob("../../lua/*/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	set, arguments := regexp.MustCompile(`(?s)\bparameters = \{(.*?)\}`), 0
	check := func(where, argument string) {
		_, isKnown := vocabulary.Of(argument)
		_, isSpan := vocabulary.Of(argument + "_ms")
		if arguments++; !isKnown && !isSpan {
			t.Errorf("%s has the argument %s, which is not in the vocabulary", where, argument)
		}
	}
	for _, f := range field.All {
		if f.By == field.Client {
			continue
		}
		if check("a task", f.InJSON()); f.Type == field.Span {
			check("a task", f.Plain())
		}
	}
	for _, name := range files {
		if folder := filepath.Base(filepath.Dir(name)); folder != "facade" && folder != "named" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, known := range set.FindAllStringSubmatch(string(text), -1) {
			for _, argument := range regexp.MustCompile(`(\w+) = true`).FindAllStringSubmatch(known[1], -1) {
				check(name, argument[1])
			}
		}
	}
	if arguments < 70 {
		t.Errorf("the functions have %d arguments", arguments)
	}
}
