package structure

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// lua/store/keys.lua names each key like this, with its type and what it holds. "+ id:" says
// what is appended to a name that ends with a colon. The table may have other entries after an
// empty line.
//
//	deadlines = p .. "deadlines",  -- zset     live ids that have a deadline
//	task = p .. "task:",           -- hash     + id: the record of a task
//
// The key has a row in a table of docs/reference/keys.md, with the appended part in angle brackets:
//
//	| `root:deadlines` | zset | … |
//	| `root:task:<id>` | hash | … |
const (
	keysLua  = "lua/store/keys.lua"
	keysGo   = "internal/engine/keys.go"
	keysDocs = "docs/reference/keys.md"
)

var (
	keyEntry = regexp.MustCompile(`^    (\w+) = (?:root|p \.\. "([^"]*)"),\s*(?:--\s*(.*))?$`)
	keyNote  = regexp.MustCompile(`^(hash|string|list|set|zset|stream|channel)\s+(?:\+ (\w+): )?\S`)
	keyRow   = regexp.MustCompile("^\\|\\s*`(root[^`]*)`\\s*\\|\\s*(\\w+)\\s*\\|")
	keyInGo  = regexp.MustCompile(`"(:[a-z_]+:?)"`)
)

// keyTable finds keys whose names differ in the Lua, the Go code and the document.
func keyTable(fsys fs.FS) ([]string, error) {
	lua, err := fs.ReadFile(fsys, keysLua)
	if err != nil {
		return nil, err
	}
	inLua, found := luaKeys(string(lua))

	docs, err := fs.ReadFile(fsys, keysDocs)
	if err != nil {
		return append(found, "there is no "+keysDocs), nil
	}
	inDocs := map[string]string{}
	for line := range strings.Lines(string(docs)) {
		if row := keyRow.FindStringSubmatch(line); row != nil {
			inDocs[row[1]] = row[2]
		}
	}
	for key, kind := range inLua {
		switch inDocs[key] {
		case kind:
		case "":
			found = append(found, fmt.Sprintf("%s has no row | `%s` | %s |", keysDocs, key, kind))
		default:
			found = append(found, fmt.Sprintf("%s: `%s` is a %s, and in %s a %s", keysDocs, key, inDocs[key], keysLua, kind))
		}
	}
	for key := range inDocs {
		if inLua[key] == "" {
			found = append(found, fmt.Sprintf("%s: `%s` is not named in %s", keysDocs, key, keysLua))
		}
	}

	text, err := fs.ReadFile(fsys, keysGo)
	if err != nil {
		return nil, err
	}
	for _, match := range keyInGo.FindAllStringSubmatch(string(text), -1) {
		named := slices.ContainsFunc(slices.Collect(maps.Keys(inLua)), func(key string) bool {
			bare, _, _ := strings.Cut(key, "<")
			return bare == "root"+match[1]
		})
		if !named {
			found = append(found, fmt.Sprintf("%s: %q is not named in %s", keysGo, match[1], keysLua))
		}
	}
	slices.Sort(found)
	return found, nil
}

// luaKeys returns the keys of keys.lua, written as in the document, with their types.
func luaKeys(text string) (kinds map[string]string, found []string) {
	kinds = map[string]string{}
	_, table, _ := strings.Cut(text, "  return {\n")
	table, _, _ = strings.Cut(table, "\n  }\n")
	table, others, _ := strings.Cut(table, "\n\n")
	if strings.Contains(others, "p ..") {
		found = append(found, keysLua+": names a key after the empty line: move it above")
	}
	for line := range strings.Lines(table) {
		line = strings.TrimRight(line, "\n")
		entry := keyEntry.FindStringSubmatch(line)
		if entry == nil {
			found = append(found, fmt.Sprintf("%s: cannot read %q: write name = p .. \"name\", -- type, what it holds", keysLua, line))
			continue
		}
		name, suffix := entry[1], entry[2]
		note := keyNote.FindStringSubmatch(entry[3])
		prefix := strings.HasSuffix(suffix, ":")
		if note == nil || prefix != (note[2] != "") {
			found = append(found, fmt.Sprintf("%s: %s has no comment with its type, what it holds, and what is appended to its name", keysLua, name))
			continue
		}
		key := "root"
		if suffix != "" {
			key += ":" + suffix
		}
		if prefix {
			key += "<" + note[2] + ">"
		}
		if name != strings.TrimSuffix(suffix, ":") && key != "root" {
			found = append(found, fmt.Sprintf("%s: %s names the key %q: use one name for both", keysLua, name, suffix))
		}
		kinds[key] = note[1]
	}
	if len(kinds) == 0 {
		found = append(found, keysLua+" names no keys")
	}
	return kinds, found
}
