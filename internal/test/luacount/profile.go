package luacount

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/lua"
)

// Profile returns two tables of the work: by function of the Lua, and by C function, each with the most work first. The work
// of a C function is also in the row of the function that calls it.
func (c Cost) Profile(library *lua.Facade) string {
	lines := strings.Split(library.Text(), "\n")
	functions, ofC := map[string]Work{}, map[string]Work{}
	for at, work := range c {
		name := "called by a C function"
		if at.First > 0 {
			name = library.Place(at.First) + " " + function(lines[at.First-1])
		}
		functions[name] = functions[name].Plus(work)
		if at.C != "" {
			ofC[at.C] = ofC[at.C].Plus(work)
		}
	}
	sum, _ := c.Total()
	var out strings.Builder
	fmt.Fprintln(&out, "instructions         C calls    bytes  function")
	for _, name := range most(functions) {
		w := functions[name]
		fmt.Fprintf(&out, "%12d  %4.1f%%  %8d  %7d  %s\n", w.Instructions, 100*float64(w.Instructions)/float64(sum.Instructions), w.Calls, w.Bytes, name)
	}
	fmt.Fprintf(&out, "\nfiles: %s\n", strings.Join(c.Files(library), " "))
	fmt.Fprintln(&out, "\n     C calls    bytes  C function")
	for _, name := range most(ofC) {
		fmt.Fprintf(&out, "%12d  %7d  %s\n", ofC[name].Calls, ofC[name].Bytes, name)
	}
	return out.String()
}

// Files returns the files of the Lua whose functions ran, sorted.
func (c Cost) Files(library *lua.Facade) []string {
	files := map[string]bool{}
	for at := range c {
		if at.First > 0 {
			file, _, _ := strings.Cut(library.Place(at.First), ":")
			files[file] = true
		}
	}
	return slices.Sorted(maps.Keys(files))
}

// most returns the names with the most work first.
func most(works map[string]Work) []string {
	return slices.SortedFunc(maps.Keys(works), func(a, b string) int {
		x, y := works[a], works[b]
		return cmp.Or(cmp.Compare(y.Instructions, x.Instructions), cmp.Compare(y.Calls, x.Calls), cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(a, b))
	})
}

var named = regexp.MustCompile(`function ([\w.:]+)\(|(\w+) = function\(`)

// function returns the name of the function that begins in a line.
func function(line string) string {
	m := named.FindStringSubmatch(line)
	if m == nil {
		return "without a name"
	}
	return m[1] + m[2]
}
