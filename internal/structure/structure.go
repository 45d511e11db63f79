// Package structure holds the tests of what no compiler checks: which way imports
// point, that a terminal status is written in one place, that documents and code name
// the same keys.
//
// A rule takes the tree and returns a sentence for each finding. Each rule is proven
// by a table of trees in which it must find something.
package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// rule is a property of the whole tree: what it says, and what finds the exceptions.
type rule struct {
	name string
	find func(fsys fs.FS) ([]string, error)
}

var rules = []rule{
	{"imports go down the layers", imports},
	{"every package says what it is for", packageComments},
	{"state changes in Lua and nowhere else", stateInGo},
	{"no test sleeps without saying why", sleeps},
	{"a terminal status is given in finish.lua only", terminalStatus},
	{"nothing is written while a call decides", writesInLua},
	{"events are appended in store/events.lua only", onlyIn("XADD", "lua/store/events.lua", "lua/store/may_write.lua")},
	{"the clock is read in now.lua only", onlyIn("TIME", "lua/store/now.lua")},
	{"documents and code name the same keys", keyTable},
	{"documents and code name the same parts of a record", recordTable},
	{"documents and scripts tell of the same events", eventTable},
	{"there is a changelog for what comes next", changelog},
}

// source is a Go file, parsed.
type source struct {
	name string // from the top of the tree, with slashes
	set  *token.FileSet
	file *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

func (s source) line(pos token.Pos) int { return s.set.Position(pos).Line }

// goFiles parses all Go files of the tree, those for other systems too.
func goFiles(fsys fs.FS) ([]source, error) {
	var sources []source
	err := each(fsys, ".go", func(name string, text []byte) error {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			sources = append(sources, source{name, set, file})
		}
		return err
	})
	return sources, err
}

// each reads all files of a kind, but not what tests keep or git does.
func each(fsys fs.FS, extension string, do func(name string, text []byte) error) error {
	return fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := path.Base(name); name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != extension {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return do(name, text)
	})
}
