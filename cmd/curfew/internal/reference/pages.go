package reference

import (
	"errors"
	"io"
	"strings"

	"github.com/curfew-dev/curfew/cmd/internal/shell"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/httpapi"
)

// Pages returns the pages.
func Pages() []shell.Page {
	return []shell.Page{
		{Word: "metrics", Write: made(metricsPage)},
		{Word: "http", Write: made(httpapi.Reference)},
		{Word: "openapi", Write: made(func() string { return string(httpapi.OpenAPI()) })},
		{Word: "flow", Write: flowPage},
		{Word: "schema", Write: made(func() string { return string(flow.Schema()) })},
	}
}

// made returns a Write of a page that does not need the page of before.
func made(text func() string) func(io.Reader) (string, error) {
	return func(io.Reader) (string, error) { return text(), nil }
}

// fieldsBegin is the line of docs/reference/flow.md below which the tables are. The text above it is written by hand.
const fieldsBegin = "<!-- make docs writes what follows from the tables of package flow. -->"

// flowPage returns the page of the fields of definitions, with new tables.
func flowPage(old io.Reader) (string, error) {
	page, err := io.ReadAll(old)
	if err != nil {
		return "", err
	}
	above, _, ok := strings.Cut(string(page), fieldsBegin)
	if !ok {
		return "", errors.New("stdin must be docs/reference/flow.md, which has the line " + fieldsBegin)
	}
	return above + fieldsBegin + "\n\n" + flow.Reference(), nil
}
