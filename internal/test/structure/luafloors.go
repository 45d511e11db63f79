package structure

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// floors lists the folders of the Lua, the lowest floor first. A file uses files of its own folder and of lower floors only.
var floors = [][]string{
	{"store"}, // how records, sets and events are read and written; knows no rule
	{"check", "queue"},
	{"wait"},
	{"task"},
	{"agent", "explain"},
	{"unit", "repair"},
	{"sweep", "named"},
	{"call"},
	{"facade"},
}

func floor(folder string) int {
	return slices.IndexFunc(floors, func(folders []string) bool { return slices.Contains(folders, folder) })
}

var useLine = regexp.MustCompile(`^-- @use ([a-z0-9_]+/[a-z0-9_]+)(?:: .+)?$`)

// luaFloors finds uses of a file on the same floor in another folder, or on a higher one.
func luaFloors(fsys fs.FS) ([]string, error) {
	var found []string
	err := each(fsys, ".lua", func(name string, text []byte) error {
		inLua, ok := strings.CutPrefix(name, "lua/")
		folder := path.Dir(inLua)
		if !ok {
			return nil
		}
		if floor(folder) < 0 {
			found = append(found, fmt.Sprintf("%s: the folder %s has no floor in internal/test/structure/luafloors.go", name, folder))
			return nil
		}
		for i, line := range strings.Split(string(text), "\n") {
			use := useLine.FindStringSubmatch(line)
			if use == nil {
				continue
			}
			if of := path.Dir(use[1]); of != folder && floor(of) >= floor(folder) {
				found = append(found, fmt.Sprintf("%s:%d: uses %s, which is not on a lower floor", name, i+1, use[1]))
			}
		}
		return nil
	})
	return found, err
}
