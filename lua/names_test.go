package lua

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/yuin/gopher-lua/ast"
	luaparse "github.com/yuin/gopher-lua/parse"
)

// given are the names that Redis gives a script and that ours may use.
var given = []string{
	"redis", "KEYS", "ARGV", "string", "table", "math", "cjson", "tonumber", "tostring", "pairs",
	"ipairs", "type", "unpack", "pcall", "error", "select", "next", "assert",
}

func TestEveryNameOfAScriptIsDefined(t *testing.T) {
	for name, found := range inspect(t) {
		for _, f := range found.undefined {
			t.Errorf("%s: %s: %s", name, f.at, f.text)
		}
	}
}

// Every helper is made anew at every call of a script, so one that the script
// cannot reach costs and serves nothing.
func TestEveryIncludeOfAScriptIsUsed(t *testing.T) {
	for name, found := range inspect(t) {
		for _, f := range found.unused {
			if strings.HasPrefix(f.at, "lua/include/") {
				t.Errorf("%s: %s: %s", name, f.at, f.text)
			}
		}
	}
}

// A file that uses what only another file includes breaks when that one changes.
func TestEveryFileIncludesWhatItUses(t *testing.T) {
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		source, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parse(path, string(source))
		if err != nil {
			return err
		}
		var names []string
		for _, in := range f.includes {
			names = append(names, in.text)
		}
		found := inspectSource(t, string(source), names, func(text string) string {
			return strings.ReplaceAll(text, "<string>", "lua/"+path)
		})
		for _, f := range found.undefined {
			t.Errorf("%s: %s: is there an @include for it in this file?", f.at, f.text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryScriptCompiles(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient, o Options) {
		l, err := Load(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range l.Names() {
			if sha, err := rdb.ScriptLoad(t.Context(), l.Source(name)).Result(); err != nil {
				t.Errorf("%v", l.explain(name, err))
			} else if sha != l.SHA(name) {
				t.Errorf("%s: SHA = %s, but Redis knows it as %s", name, l.SHA(name), sha)
			}
		}
	})
}

// findings are what is wrong with the names of one script.
type findings struct{ undefined, unused []finding }

type finding struct{ at, text string }

// inspect walks all scripts of the package.
func inspect(t *testing.T) map[string]findings {
	t.Helper()
	l, err := Load(Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]findings{}
	for _, name := range l.Names() {
		all[name] = inspectSource(t, l.Source(name), nil, func(text string) string { return l.Locate(name, text) })
	}
	return all
}

// inspectSource walks a chunk in which some names are declared before its first
// line. locate turns "<string>:12" into a position of the reader's.
func inspectSource(t *testing.T, source string, declared []string, locate func(string) string) findings {
	t.Helper()
	chunk, err := luaparse.Parse(strings.NewReader(source), "<string>")
	if err != nil {
		t.Fatal(locate(err.Error()))
	}
	at := func(line int) string { return locate(fmt.Sprintf("<string>:%d", line)) }
	w := &walker{}
	var scope *local
	w.block(scope.declare(declared...), chunk)
	slices.SortFunc(w.found, func(a, b nameAt) int { return a.line - b.line })

	var f findings
	for _, n := range w.found {
		f.undefined = append(f.undefined, finding{at(n.line), n.text})
	}
	for _, fn := range w.functions {
		if !fn.used {
			f.unused = append(f.unused, finding{at(fn.line), fn.name + " is never used"})
		}
	}
	return f
}

// walker resolves each name of a chunk as Lua 5.1 does.
type walker struct {
	found     []nameAt
	functions []*local // all local functions
	inside    []*local // local functions whose bodies are being walked
}

type nameAt struct {
	line int
	text string
}

// local is a declared name. Scopes are lists, the newest first, so that a scope
// ends by being dropped.
type local struct {
	name  string
	line  int
	used  bool // for a function: from outside of itself
	outer *local
}

func (s *local) declare(names ...string) *local {
	for _, name := range names {
		s = &local{name: name, outer: s}
	}
	return s
}

func (w *walker) lookup(scope *local, name string) *local {
	for s := scope; s != nil; s = s.outer {
		if s.name == name {
			return s
		}
	}
	return nil
}

func (w *walker) report(line int, format string, args ...any) {
	w.found = append(w.found, nameAt{line, fmt.Sprintf(format, args...)})
}

// block walks statements and returns the scope at their end: the condition of a
// repeat sees it.
func (w *walker) block(scope *local, stmts []ast.Stmt) *local {
	for _, stmt := range stmts {
		scope = w.stmt(scope, stmt)
	}
	return scope
}

// stmt walks a statement and returns the scope of the next one.
func (w *walker) stmt(scope *local, stmt ast.Stmt) *local {
	switch s := stmt.(type) {
	case *ast.LocalAssignStmt:
		if isLocalFunction(s) {
			return w.localFunction(scope, s)
		}
		w.exprs(scope, s.Exprs) // local x = x means the outer x
		return scope.declare(s.Names...)
	case *ast.AssignStmt:
		w.exprs(scope, s.Rhs)
		for _, target := range s.Lhs {
			w.assign(scope, target)
		}
	case *ast.FuncDefStmt:
		w.funcDef(scope, s)
	case *ast.FuncCallStmt:
		w.expr(scope, s.Expr)
	case *ast.DoBlockStmt:
		w.block(scope, s.Stmts)
	case *ast.WhileStmt:
		w.expr(scope, s.Condition)
		w.block(scope, s.Stmts)
	case *ast.RepeatStmt:
		w.expr(w.block(scope, s.Stmts), s.Condition)
	case *ast.IfStmt:
		w.expr(scope, s.Condition)
		w.block(scope, s.Then)
		w.block(scope, s.Else)
	case *ast.NumberForStmt:
		w.exprs(scope, []ast.Expr{s.Init, s.Limit, s.Step})
		w.block(scope.declare(s.Name), s.Stmts)
	case *ast.GenericForStmt:
		w.exprs(scope, s.Exprs)
		w.block(scope.declare(s.Names...), s.Stmts)
	case *ast.ReturnStmt:
		w.exprs(scope, s.Exprs)
	case *ast.BreakStmt:
	default:
		w.report(stmt.Line(), "%T is not Lua 5.1", stmt) // goto and labels
	}
	return scope
}

// isLocalFunction tells "local function f" from "local f = function": only the
// first sees itself. The parser makes the same node of both, and gives only the
// first a last line.
func isLocalFunction(s *ast.LocalAssignStmt) bool {
	return s.LastLine() != 0
}

func (w *walker) localFunction(scope *local, s *ast.LocalAssignStmt) *local {
	f := &local{name: s.Names[0], line: s.Line(), outer: scope}
	w.functions = append(w.functions, f)
	w.inside = append(w.inside, f)
	w.expr(f, s.Exprs[0])
	w.inside = w.inside[:len(w.inside)-1]
	return f
}

func (w *walker) assign(scope *local, target ast.Expr) {
	ident, ok := target.(*ast.IdentExpr)
	if !ok {
		w.expr(scope, target)
	} else if w.lookup(scope, ident.Value) == nil {
		w.report(ident.Line(), "%s is assigned and not local", ident.Value)
	}
}

// funcDef walks "function f", "function t.f" and "function t:f".
func (w *walker) funcDef(scope *local, s *ast.FuncDefStmt) {
	if s.Name.Func != nil {
		w.assign(scope, s.Name.Func)
		w.expr(scope, s.Func)
		return
	}
	w.expr(scope, s.Name.Receiver)
	w.expr(scope.declare("self"), s.Func)
}

func (w *walker) exprs(scope *local, exprs []ast.Expr) {
	for _, e := range exprs {
		w.expr(scope, e)
	}
}

func (w *walker) expr(scope *local, expr ast.Expr) {
	switch e := expr.(type) {
	case nil: // no step, no key, no receiver
	case *ast.IdentExpr:
		w.use(scope, e)
	case *ast.FunctionExpr:
		w.block(scope.declare(e.ParList.Names...), e.Stmts)
	case *ast.AttrGetExpr:
		w.exprs(scope, []ast.Expr{e.Object, e.Key})
	case *ast.TableExpr:
		for _, f := range e.Fields {
			w.exprs(scope, []ast.Expr{f.Key, f.Value})
		}
	case *ast.FuncCallExpr:
		w.exprs(scope, []ast.Expr{e.Func, e.Receiver})
		w.exprs(scope, e.Args)
	case *ast.LogicalOpExpr:
		w.exprs(scope, []ast.Expr{e.Lhs, e.Rhs})
	case *ast.RelationalOpExpr:
		w.exprs(scope, []ast.Expr{e.Lhs, e.Rhs})
	case *ast.StringConcatOpExpr:
		w.exprs(scope, []ast.Expr{e.Lhs, e.Rhs})
	case *ast.ArithmeticOpExpr:
		w.exprs(scope, []ast.Expr{e.Lhs, e.Rhs})
	case *ast.UnaryMinusOpExpr:
		w.expr(scope, e.Expr)
	case *ast.UnaryNotOpExpr:
		w.expr(scope, e.Expr)
	case *ast.UnaryLenOpExpr:
		w.expr(scope, e.Expr)
	case *ast.NumberExpr, *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.Comma3Expr:
	default:
		w.report(expr.Line(), "%T is new to this test", expr)
	}
}

func (w *walker) use(scope *local, e *ast.IdentExpr) {
	l := w.lookup(scope, e.Value)
	switch {
	case l == nil && !slices.Contains(given, e.Value):
		w.report(e.Line(), "%s is not defined", e.Value)
	case l != nil && !slices.Contains(w.inside, l): // a function that only calls itself is not used
		l.used = true
	}
}

func TestTheWalkerFindsNames(t *testing.T) {
	for _, test := range []struct {
		claim, source string
		want          []string
	}{
		{"what Redis gives", "return redis.call(KEYS[1], ARGV[1], tonumber('1'), cjson.encode({}))", nil},
		{"a global that Redis does not give", "return os.time()", []string{"1: os is not defined"}},
		{"an unknown function", "\nfinsh(1)", []string{"2: finsh is not defined"}},
		{"a field is no name", "local t = {}\nreturn t.x.y, t['z']", nil},
		{"a key is a name", "local t = {}\nreturn t[x]", []string{"2: x is not defined"}},
		{"a field of a table is no name, its value is", "return {a = b, [c] = 1, d}",
			[]string{"1: b is not defined", "1: c is not defined", "1: d is not defined"}},
		{"a method is no name, its arguments are", "local s = ''\nreturn s:rep(n)", []string{"2: n is not defined"}},
		{"a receiver is a name", "return s:rep(1)", []string{"1: s is not defined"}},

		{"a local", "local a, b = 1\nreturn a + b", nil},
		{"a local is not yet there in its own value", "local a = a", []string{"1: a is not defined"}},
		{"a local is not there before", "local b = a\nlocal a = 1", []string{"1: a is not defined"}},
		{"a local shadows and ends", "local a = 1\ndo local a, b = a, 2 end\nreturn a, b", []string{"3: b is not defined"}},
		{"a local of a branch", "if 1 then local a = 1 elseif a then return a else return a end",
			slices.Repeat([]string{"1: a is not defined"}, 3)},
		{"a local of a while", "while a do local a = 1 end\nreturn a", []string{"1: a is not defined", "2: a is not defined"}},
		{"the condition of a repeat sees its body", "repeat local a = 1 until a == 1", nil},
		{"and nothing after it does", "repeat local a = 1 until true\nreturn a", []string{"2: a is not defined"}},

		{"a parameter", "local f = function(a, ...) return a, ... end\nreturn a, f", []string{"2: a is not defined"}},
		{"an upvalue", "local a = 1\nreturn function() return function() return a end end", nil},
		{"a local function sees itself", "local function f(n) return n and f(n - 1) end\nreturn f", nil},
		{"a function that is a value does not", "local f = function(n)\n  return f(n)\nend\nreturn f", []string{"2: f is not defined"}},
		{"a local function does not see the next", "local function f() return g() end\nlocal function g() end\nreturn f, g",
			[]string{"1: g is not defined"}},
		{"one declared ahead is seen", "local g\nlocal function f() return g() end\ng = function() end\nreturn f", nil},

		{"a loop's number", "for i = 1, 2 do local a = i end\nreturn i", []string{"2: i is not defined"}},
		{"a loop's bounds do not see it", "for i = i, i, i do end", slices.Repeat([]string{"1: i is not defined"}, 3)},
		{"a loop's names", "for k, v in pairs({}) do local a = k .. v end\nreturn k", []string{"2: k is not defined"}},
		{"a loop's list does not see them", "for k in pairs(k) do end", []string{"1: k is not defined"}},

		{"an assignment to a local", "local a\na = 1", nil},
		{"an assignment to a global", "local a\na, b = 1, 2", []string{"2: b is assigned and not local"}},
		{"an assignment to what Redis gives", "tonumber = nil", []string{"1: tonumber is assigned and not local"}},
		{"an assignment to a field", "local t = {}\nt.a, t[b] = 1, 2", []string{"2: b is not defined"}},
		{"a global function", "function f() end", []string{"1: f is assigned and not local"}},
		{"a function in a field", "local t = {}\nfunction t.f(a) return a, self end\nfunction t:g() return self end",
			[]string{"2: self is not defined"}},
		{"a function in a field of nothing", "function t.f() end", []string{"1: t is not defined"}},

		{"every operator", "return -a, not b, #c, d + 1, e .. '', f == 1, g and 1, 1 or h", []string{
			"1: a is not defined", "1: b is not defined", "1: c is not defined", "1: d is not defined",
			"1: e is not defined", "1: f is not defined", "1: g is not defined", "1: h is not defined"}},
		{"goto is of a later Lua", "goto a\n::a::",
			[]string{"1: *ast.GotoStmt is not Lua 5.1", "2: *ast.LabelStmt is not Lua 5.1"}},
	} {
		t.Run(test.claim, func(t *testing.T) {
			got := listed(inspectSource(t, test.source, nil, numbered).undefined)
			if !slices.Equal(got, test.want) {
				t.Errorf("%s\nfound %q\nwant  %q", test.source, got, test.want)
			}
		})
	}
}

func TestTheWalkerFindsFunctionsThatNothingUses(t *testing.T) {
	for _, test := range []struct {
		claim, source string
		want          []string
	}{
		{"called", "local function f() end\nf()", nil},
		{"passed on", "local function f() end\nreturn pcall(f)", nil},
		{"called by another", "local function f() end\nlocal function g() f() end\ng()", nil},
		{"never called", "local function f() end\n", []string{"1: f is never used"}},
		{"called by itself alone", "local function f() return f() end", []string{"1: f is never used"}},
		{"called by its inner function alone", "local function f()\n  local function g() f() end\n  g()\nend",
			[]string{"1: f is never used"}},
		{"another of its name is called", "local function f() end\nlocal function f() end\nf()", []string{"1: f is never used"}},
		{"called by one that is never called", "local function f() end\nlocal function g() f() end", []string{"2: g is never used"}},
	} {
		t.Run(test.claim, func(t *testing.T) {
			got := listed(inspectSource(t, test.source, nil, numbered).unused)
			if !slices.Equal(got, test.want) {
				t.Errorf("%s\nfound %q\nwant  %q", test.source, got, test.want)
			}
		})
	}
}

// The findings of a composed script are located in the files that were written.
func TestFindingsNameTheFile(t *testing.T) {
	l := load(t, tree("s.lua", "-- s\n-- @include a\n\n-- why\nreturn b()", "include/a.lua", "-- a\nlocal function a() end"), Options{})
	got := inspectSource(t, l.Source("s"), nil, func(text string) string { return l.Locate("s", text) })
	want := map[string]string{"lua/s.lua:5": "b is not defined", "lua/include/a.lua:2": "a is never used"}
	all := map[string]string{}
	for _, f := range append(got.undefined, got.unused...) {
		all[f.at] = f.text
	}
	if !maps.Equal(all, want) {
		t.Errorf("found %v, want %v", all, want)
	}
}

func numbered(position string) string { return strings.TrimPrefix(position, "<string>:") }

func listed(all []finding) []string {
	var lines []string
	for _, f := range all {
		lines = append(lines, f.at+": "+f.text)
	}
	return lines
}
