package structure

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// An event is told by emit(tx, level, kind, task, "name=" .. value .. …) and has a row in
// docs/events.md, which names what only this kind says:
//
//	| `task_failed` | terminal | when | `reason` |
const eventsDocs = "docs/events.md"

var (
	eventRow   = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (terminal|all) \\| [^|]+ \\|([^|]*)\\|$")
	eventField = regexp.MustCompile("([a-z_]+)=")
	eventName  = regexp.MustCompile("`([a-z_]+)`")
)

// emitted is what the Lua says of a kind.
type emitted struct {
	at     string // where
	level  string
	fields []string
}

// eventTable finds kinds, levels and fields that the Lua and the document do not have alike.
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
	told := map[string]bool{}
	err = each(fsys, ".lua", func(name string, text []byte) error {
		for kind, e := range emits(name, lex(string(text))) {
			kinds := []string{kind}
			if strings.HasSuffix(kind, "_") { // the rest is worked out: some kinds that begin so
				kinds = slices.DeleteFunc(slices.Collect(maps.Keys(rows)), func(k string) bool {
					return !strings.HasPrefix(k, kind) || !slices.Equal(rows[k], append([]string{e.level}, e.fields...))
				})
			}
			if len(kinds) == 0 || rows[kinds[0]] == nil {
				found = append(found, fmt.Sprintf("%s: %s has no row | `%s` | %s |", e.at, eventsDocs, kind, e.level))
				continue
			}
			for _, k := range kinds {
				told[k] = true
			}
			if row := rows[kinds[0]]; row[0] != e.level {
				found = append(found, fmt.Sprintf("%s: %s is of the level %s, and in %s %s", e.at, kind, e.level, eventsDocs, row[0]))
			} else {
				for _, field := range e.fields {
					if !slices.Contains(row[1:], field) {
						found = append(found, fmt.Sprintf("%s: %s says %s, and its row in %s does not", e.at, kind, field, eventsDocs))
					}
				}
			}
		}
		return nil
	})
	for kind := range rows {
		if !told[kind] {
			found = append(found, fmt.Sprintf("%s: no script tells of `%s`", eventsDocs, kind))
		}
	}
	slices.Sort(found)
	return found, err
}

// emits are the calls of emit in a file, pcall(emit, …) included. A kind that is put
// together is told by what it begins with.
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

// arguments are those of a call, up to its closing bracket.
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
