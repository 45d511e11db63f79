// Package structure holds tests of rules that no compiler checks: the direction of imports,
// that a terminal status is written in one place, that documents and code name the same keys.
//
// A rule takes the tree and returns a sentence for each finding. A table of small trees, with
// the findings that each must have, tests each rule.
package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// rule is a property of the whole tree: its name, and the function that finds violations.
type rule struct {
	name string
	find func(fsys fs.FS) ([]string, error)
}

var rules = []rule{
	{"imports go down the layers", imports},
	{"every package has a comment", packageComments},
	{"state changes in Lua and nowhere else", stateInGo},
	{"no test sleeps without a reason", sleeps},
	{"no test has a limit of real time", realTime},
	{"tests write programs in one way", programs},
	{"the error of a pipeline is kept", pipelines},
	{"a terminal status is given in finish.lua only", terminalStatus},
	{"nothing is written while a call decides", writesInLua},
	{"the folders of the Lua are floors", luaFloors},
	{"events are appended in store/events.lua only", onlyIn("XADD", "lua/store/events.lua", "lua/store/rights.lua", "internal/test/luacount/harness.lua")},
	{"the clock is read in now.lua only", onlyIn("TIME", "lua/store/now.lua", "internal/test/luacount/harness.lua")},
	{"the reason of a refusal begins with a verb", reasons},
	{"an error that callers act on is joined to no other", joins},
	{"documents and code name the same keys", keyTable},
	{"documents and code name the same fields of a record", recordTable},
	{"documents and Lua name the same events", eventTable},
	{"the changelog has a heading for unreleased changes", changelog},
}

// source is a Go file, parsed.
type source struct {
	name string // the path from the top of the tree, with slashes
	set  *token.FileSet
	file *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

func (s source) line(pos token.Pos) int { return s.set.Position(pos).Line }

// goFiles parses all Go files of the tree, including those for other systems.
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

// each calls do for all files with an extension, except in testdata and in hidden folders.
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
