package app

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/urfave/cli/v2"
)

type fruit struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

var fruits = List[fruit]{
	Columns: []Column[fruit]{
		{Name: "name", Show: func(f fruit) string { return f.Name }},
		{Name: "count", Right: true, Show: func(f fruit) string { return strconv.Itoa(f.Count) }},
		{Name: "letters", Wide: true, Show: func(f fruit) string { return strconv.Itoa(len(f.Name)) }},
	},
	ID: func(f fruit) string { return f.Name },
}

func printed(t *testing.T, format string, list []fruit, failure error) (string, error) {
	t.Helper()
	var out bytes.Buffer
	program := &cli.App{Writer: &out, Flags: []cli.Flag{ListFlag()}, Action: func(c *cli.Context) error {
		return fruits.Print(c, func(yield func(fruit, error) bool) {
			for _, f := range list {
				if !yield(f, nil) {
					return
				}
			}
			if failure != nil {
				yield(fruit{}, failure)
			}
		})
	}}
	err := program.Run([]string{"curfew", "-o", format})
	return out.String(), err
}

func TestAListIsPrintedInEachFormat(t *testing.T) {
	two := []fruit{{"apple", 7}, {"pêche", 1200}}
	for format, want := range map[string]string{
		"table": "name   count\napple      7\npêche   1200\n",
		"wide":  "name   count  letters\napple      7  5\npêche   1200  6\n",
		"json":  `[{"name":"apple","count":7},{"name":"pêche","count":1200}]` + "\n",
		"jsonl": `{"name":"apple","count":7}` + "\n" + `{"name":"pêche","count":1200}` + "\n",
		"id":    "apple\npêche\n",
	} {
		if got, err := printed(t, format, two, nil); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", format, got, err, want)
		}
	}
	for format, want := range map[string]string{"table": "", "wide": "", "json": "[]\n", "jsonl": "", "id": ""} {
		if got, err := printed(t, format, nil, nil); got != want || err != nil {
			t.Errorf("an empty list in %s: %q, %v; want %q", format, got, err, want)
		}
	}
}

// A long table has one heading, and what was read before an error is printed.
func TestALongListIsPrintedInParts(t *testing.T) {
	long := slices.Repeat([]fruit{{"fig", 1}}, 2500)
	failed := errors.New("no more")
	got, err := printed(t, "table", long, failed)
	lines := bytes.Count([]byte(got), []byte("\n"))
	if headings := bytes.Count([]byte(got), []byte("name")); lines != 2501 || headings != 1 || !errors.Is(err, failed) {
		t.Errorf("%d lines with %d headings, %v", lines, headings, err)
	}
	if got, _ := printed(t, "json", long, failed); got != "" {
		t.Errorf("half an array: %.40q", got)
	}
}
