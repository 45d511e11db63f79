package structure

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// The fields of a record are named in three places: those of its first lines in the opening
// comment of parse, the lines and texts after them in the table of fields for the spec, and in names for the state.
// Each name has a row in docs/reference/keys.md, under the heading of its text.
const (
	recordLua    = "lua/store/record.lua"
	fieldsLua    = "lua/store/task_fields.lua"
	specHeading  = "### The spec\n"
	stateHeading = "### The state\n"
)

var (
	firstLines = regexp.MustCompile(`(?m)^--   spec   ([a-z_ ]+?)  +state  ([a-z_ ]+)$`)
	ofState    = regexp.MustCompile(`names\.state_(?:lines|texts) = \{([^}]*)\}`)
	ofSpec     = regexp.MustCompile(`\{"(\w+)", spec = `)
	recordRow  = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	backticked = regexp.MustCompile("`([^`]+)`")
	inQuotes   = regexp.MustCompile(`"([^"]*)"`)
)

// recordTable finds fields of records in which the Lua and the document differ.
func recordTable(fsys fs.FS) ([]string, error) {
	record, err := fs.ReadFile(fsys, recordLua)
	if err != nil {
		return nil, err
	}
	docs, err := fs.ReadFile(fsys, keysDocs)
	if err != nil {
		return []string{"there is no " + keysDocs}, nil
	}
	first := firstLines.FindSubmatch(record)
	if first == nil {
		return []string{recordLua + " does not name the words of the first lines"}, nil
	}
	inLua := map[string][]string{"spec": strings.Fields(string(first[1])), "state": strings.Fields(string(first[2]))}
	for _, list := range ofState.FindAllSubmatch(record, -1) {
		for _, name := range inQuotes.FindAllSubmatch(list[1], -1) {
			inLua["state"] = append(inLua["state"], string(name[1]))
		}
	}
	fields, err := fs.ReadFile(fsys, fieldsLua)
	if err != nil {
		return nil, err
	}
	for _, name := range ofSpec.FindAllSubmatch(fields, -1) {
		inLua["spec"] = append(inLua["spec"], string(name[1]))
	}
	var found []string
	for _, of := range []struct{ text, heading string }{{"spec", specHeading}, {"state", stateHeading}} {
		inDocs := rowsUnder(string(docs), of.heading)
		for _, name := range inLua[of.text] {
			if !slices.Contains(inDocs, name) {
				found = append(found, fmt.Sprintf("%s has no row | `%s` | under %q", keysDocs, name, strings.TrimSpace(of.heading)))
			}
		}
		for _, name := range inDocs {
			if !slices.Contains(inLua[of.text], name) {
				found = append(found, fmt.Sprintf("%s: `%s` is not a name of a %s in %s", keysDocs, name, of.text, recordLua))
			}
		}
	}
	return found, nil
}

// rowsUnder returns the names in the rows below a heading, up to the next heading.
func rowsUnder(docs, heading string) []string {
	_, section, _ := strings.Cut(docs, heading)
	section, _, _ = strings.Cut(section, "\n##")
	var names []string
	for _, row := range recordRow.FindAllStringSubmatch(section, -1) {
		for _, name := range backticked.FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	return names
}
