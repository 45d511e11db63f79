package structure

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// An event is emitted by emit(tx, level, kind, task, "name=" .. value .. …) and has a row in
// docs/reference/events.md, which names the fields that only this kind has:
//
//	| `task_failed` | terminal | when | `reason` |
const eventsDocs = "docs/reference/events.md"

var (
	eventRow   = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (terminal|all) \\| [^|]+ \\|([^|]*)\\|$")
	eventField = regexp.MustCompile("([a-z_]+)=")
	eventName  = regexp.MustCompile("`([a-z_]+)`")
)

// emitted is how the Lua emits a kind of event.
type emitted struct {
	at     string // file and line
	level  string
	fields []string
}

// eventTable finds kinds, levels and fields in which the Lua and the document differ.
func eventTable(fsys fs.FS) ([]string, error) {
	var found []string
	docs, err := fs.ReadFile(fsys, eventsDocs)
	if err != nil {
		return []string{"there is no " + eventsDocs}, nil
	}
	rows := map[string][]string{} // the level, then the fields
	for _, row := range eventRow.FindAllStringSubmatch(string(docs), -1) {
		rows[row[1]] = []string{row[2]}
		for _, name := range eventName.FindAllStringSubmatch(row[3], -1) {
			rows[row[1]] = append(rows[row[1]], name[1])
		}
	}
	documented := map[string]bool{}
	err = each(fsys, ".lua", func(name string, text []byte) error {
		for kind, e := range emits(name, lex(string(text))) {
			kinds := []string{kind}
			if strings.HasSuffix(kind, "_") { // the Lua computes the rest: take the rows that fit
				kinds = slices.DeleteFunc(slices.Collect(maps.Keys(rows)), func(k string) bool {
					return !strings.HasPrefix(k, kind) || !slices.Equal(rows[k], append([]string{e.level}, e.fields...))
				})
			}
			if len(kinds) == 0 || rows[kinds[0]] == nil {
				found = append(found, fmt.Sprintf("%s: %s has no row | `%s` | %s |", e.at, eventsDocs, kind, e.level))
				continue
			}
			for _, k := range kinds {
				documented[k] = true
			}
			if row := rows[kinds[0]]; row[0] != e.level {
				found = append(found, fmt.Sprintf("%s: %s has the level %s, and in %s %s", e.at, kind, e.level, eventsDocs, row[0]))
			} else {
				for _, field := range e.fields {
					if !slices.Contains(row[1:], field) {
						found = append(found, fmt.Sprintf("%s: %s has the field %s, and its row in %s does not", e.at, kind, field, eventsDocs))
					}
				}
			}
		}
		return nil
	})
	for kind := range rows {
		if !documented[kind] {
			found = append(found, fmt.Sprintf("%s: no Lua emits `%s`", eventsDocs, kind))
		}
	}
	slices.Sort(found)
	return found, err
}

// emits returns the calls of emit in a file, pcall(emit, …) included. If the Lua computes the
// kind, it is the part that is written as a string.
func emits(name string, tokens []lexeme) map[string]emitted {
	calls := map[string]emitted{}
	for i, t := range tokens {
		if t.kind != word || t.text != "emit" || i+1 >= len(tokens) || tokens[i+1].text != "(" && tokens[i+1].text != "," || i > 0 && tokens[i-1].text == "function" {
			continue
		}
		args := arguments(tokens[i+2:])
		if len(args) < 4 || args[1][0].kind != quoted || args[2][0].kind != quoted {
			calls["?"] = emitted{at: fmt.Sprintf("%s:%d", name, t.line), level: "?"}
			continue
		}
		kind := args[2][0].text
		e := emitted{at: fmt.Sprintf("%s:%d", name, t.line), level: args[1][0].text, fields: calls[kind].fields}
		for _, arg := range args[4:] {
			for _, t := range arg {
				if t.kind != quoted {
					continue
				}
				for _, name := range eventField.FindAllStringSubmatch(t.text, -1) {
					e.fields = append(e.fields, name[1])
				}
			}
		}
		calls[kind] = e
	}
	return calls
}

// arguments returns the arguments of a call, up to its closing bracket.
func arguments(tokens []lexeme) [][]lexeme {
	var args [][]lexeme
	var arg []lexeme
	depth := 0
	for _, t := range tokens {
		if t.kind == sign {
			switch t.text {
			case "(", "{", "[":
				depth++
			case ")", "}", "]":
				depth--
			}
		}
		end := depth < 0
		if (end || depth == 0 && t.kind == sign && t.text == ",") && len(arg) > 0 {
			args, arg = append(args, arg), nil
			if !end {
				continue
			}
		}
		if end {
			break
		}
		arg = append(arg, t)
	}
	return args
}
