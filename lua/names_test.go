package lua

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
	luaparse "github.com/yuin/gopher-lua/parse"
)

// given are the globals of Redis that our files may use. A call gets its keys and arguments
// as parameters.
var given = []string{
	"redis", "string", "table", "math", "cjson", "tonumber", "tostring", "pairs",
	"ipairs", "type", "unpack", "pcall", "error", "select", "next", "bit",
}

// mayRemember are the files that may change something outside of a function after loading,
// and why. A library serves all namespaces of a server, for as long as the server runs.
var mayRemember = map[string]string{
	"store/keys": "a bounded cache: names of keys depend only on the name of the root, and never change",
}

// inspected is a file of this package, and what inspect found in it.
type inspected struct {
	*file
	findings
}

// inspectAll inspects every file of the package.
func inspectAll(t *testing.T) []inspected {
	t.Helper()
	var all []*file
	sources := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		source, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parse(strings.TrimSuffix(name, ".lua"), "lua/"+name, string(source))
		if err != nil {
			return err
		}
		all, sources[f.name] = append(all, f), string(source)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	names := exports(all)
	var found []inspected
	for _, f := range all {
		found = append(found, inspected{f, inspect(t, f, sources[f.name], names[f.name])})
	}
	return found
}

// A file sees only what it defines, what it uses, and the globals of Redis. A file that lacks
// a @use fails here.
func TestEveryNameOfAFileIsDefined(t *testing.T) {
	for _, f := range inspectAll(t) {
		for _, found := range f.undefined {
			t.Errorf("%s:%s: does the file lack a @use?", f.path, found)
		}
	}
}

func TestNoNameOfAFileIsUnused(t *testing.T) {
	for _, f := range inspectAll(t) {
		for _, found := range f.unused {
			t.Errorf("%s:%s", f.path, found)
		}
	}
}

// A local with the name of a used file hides that file.
func TestNoNameOfAFileHidesAUsedFile(t *testing.T) {
	for _, f := range inspectAll(t) {
		for _, found := range f.hidden {
			t.Errorf("%s:%s", f.path, found)
		}
	}
}

func TestEveryFileIsReachedByACall(t *testing.T) {
	l, err := Load(Options{})
	if err != nil {
		t.Fatal(err)
	}
	facade, err := LoadFacade(nil)
	if err != nil {
		t.Fatal(err)
	}
	places := slices.Concat(l.whole.places, facade.whole.places)
	for _, f := range inspectAll(t) {
		if !slices.ContainsFunc(places, func(p place) bool { return p.file == f.path }) {
			t.Errorf("%s: no call uses this file", f.path)
		}
	}
}

// Another file, or the file itself, uses each function of a table.
func TestEveryFunctionOfATableIsUsed(t *testing.T) {
	all := inspectAll(t)
	used := map[string]bool{} // "store/index: index.add"
	for _, f := range all {
		for name, fields := range f.fields {
			of := f.name
			for _, u := range f.uses {
				if slices.Contains(u.names, name) {
					of = u.file
				}
			}
			for _, field := range fields {
				used[of+": "+name+"."+field] = true
			}
		}
	}
	for _, f := range all {
		for _, name := range f.methods {
			if !used[f.name+": "+name] {
				t.Errorf("%s: no file uses %s", f.path, name)
			}
		}
	}
}

func TestFunctionsHaveFewParameters(t *testing.T) {
	for _, f := range inspectAll(t) {
		for _, fn := range f.functions {
			if fn.parameters > 5 {
				t.Errorf("%s:%d: a function has %d parameters, want at most 5: pass a table", f.path, fn.line, fn.parameters)
			}
		}
	}
}

func TestNothingOutsideAFunctionChangesAfterLoading(t *testing.T) {
	for _, f := range inspectAll(t) {
		why := mayRemember[f.name]
		if why != "" && len(f.remembered) == 0 {
			t.Errorf("%s changes nothing after loading: remove it from mayRemember", f.path)
		}
		for _, found := range f.remembered {
			if why == "" {
				t.Errorf("%s:%s, and it outlives the call: keep it in tx", f.path, found)
			}
		}
	}
}

// The opening comment of begin lists what tx has, and it stays short: what one owner has is one field.
func TestTheFieldsOfTxAreListed(t *testing.T) {
	source, err := embedded.ReadFile("store/tx.lua")
	if err != nil {
		t.Fatal(err)
	}
	var listed, found []string
	for _, m := range regexp.MustCompile(`(?m)^--   ([a-z_]+)(?:, ([a-z_]+))?  +\S`).FindAllStringSubmatch(string(source), -1) {
		listed = append(listed, slices.DeleteFunc(m[1:], func(name string) bool { return name == "" || name == "version" || name == "kinds" })...)
	}
	for _, f := range inspectAll(t) {
		for _, l := range f.code {
			for _, m := range regexp.MustCompile(`\btx\.([a-z_]+)`).FindAllStringSubmatch(l.text, -1) {
				found = append(found, m[1])
			}
		}
	}
	slices.Sort(found)
	slices.Sort(listed)
	if found = slices.Compact(found); !slices.Equal(found, listed) || len(listed) > 20 {
		t.Errorf("lua/store/tx.lua lists %d fields, and the files use %d, want the same, and at most 20:\n%q\n%q", len(listed), len(found), listed, found)
	}
}

// A comment that names its own file was moved there, and sends the reader nowhere: it must name the function.
func TestNoFileNamesItself(t *testing.T) {
	for _, f := range inspectAll(t) {
		source, err := embedded.ReadFile(f.name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), f.name+".lua") && f.name != "store/tx" { // it lists which file has each field
			t.Errorf("%s names itself", f.path)
		}
	}
}

// findings are the faults of one file, and the names and functions found in it.
type findings struct {
	undefined, unused, hidden, remembered []finding
	functions                             []function
	fields                                map[string][]string // by name at the top of the file: the fields that are read, as in name.field
	methods                               []string            // functions in tables at the top: "index.add"
}

type finding struct {
	line int
	text string
}

func (f finding) String() string { return fmt.Sprintf("%d: %s", f.line, f.text) }

// function is a function with or without a name.
type function struct{ line, lines, parameters int }

// inspect walks a file. Its outermost scope contains the names that it uses of other files. needed are those that others use of it.
func inspect(t *testing.T, f *file, source string, needed []string) findings {
	t.Helper()
	chunk, err := luaparse.Parse(strings.NewReader(source), f.path)
	if err != nil {
		t.Fatal(err)
	}
	w := &walker{findings: findings{fields: map[string][]string{}}}
	var scope *name
	for _, use := range f.uses {
		scope = w.declare(scope, use.line, used, use.names...)
	}
	scope = w.block(scope, chunk)
	for _, name := range needed {
		if defined := w.lookup(scope, name); defined != nil {
			defined.read = true
		}
	}
	w.finish()
	return w.findings
}

// walker resolves each name of a file as Lua 5.1 does.
type walker struct {
	findings
	all    []*name // all names that are declared
	inside []*name // local functions whose bodies are being walked
	depth  int     // of functions
}

// name is a declared name. A scope is a list of names, the newest first. To leave a scope,
// the walker returns to the list that it had before.
type name struct {
	text  string
	line  int
	kind  string
	atTop bool // declared outside of functions
	top   bool // atTop, or a part of a table of such a name: it lives as long as the library
	read  bool // of a function: from outside of itself
	outer *name
}

// Kinds of names.
const (
	used      = "is used" // named by a @use
	fn        = "function"
	variable  = "local"
	parameter = "parameter"
)

func (w *walker) declare(scope *name, line int, kind string, texts ...string) *name {
	for _, text := range texts {
		if hidden := w.lookup(scope, text); hidden != nil && hidden.kind == used {
			w.hidden = append(w.hidden, finding{line, text + " hides what the file uses"})
		}
		scope = &name{text: text, line: line, kind: kind, atTop: w.depth == 0, top: w.depth == 0, outer: scope}
		w.all = append(w.all, scope)
	}
	return scope
}

func (w *walker) lookup(scope *name, text string) *name {
	for s := scope; s != nil; s = s.outer {
		if s.text == text {
			return s
		}
	}
	return nil
}

func (w *walker) report(line int, format string, args ...any) {
	w.undefined = append(w.undefined, finding{line, fmt.Sprintf(format, args...)})
}

// finish reports the names that are never read. A name that begins with _ is a placeholder.
func (w *walker) finish() {
	for _, n := range w.all {
		if !n.read && n.text[0] != '_' {
			w.unused = append(w.unused, finding{n.line, n.text + " is never used"})
		}
	}
	for _, list := range []*[]finding{&w.undefined, &w.unused, &w.hidden, &w.remembered} {
		slices.SortStableFunc(*list, func(a, b finding) int { return a.line - b.line })
	}
}

// block walks statements and returns the scope at their end. The condition of a repeat is in
// that scope.
func (w *walker) block(scope *name, stmts []ast.Stmt) *name {
	for _, stmt := range stmts {
		scope = w.stmt(scope, stmt)
	}
	return scope
}

// stmt walks a statement and returns the scope of the next one.
func (w *walker) stmt(scope *name, stmt ast.Stmt) *name {
	switch s := stmt.(type) {
	case *ast.LocalAssignStmt:
		return w.localAssign(scope, s)
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
		w.block(w.loop(scope, s.Line(), s.Name), s.Stmts)
	case *ast.GenericForStmt:
		w.exprs(scope, s.Exprs)
		inner := w.loop(scope, s.Line(), s.Names...)
		inner.top = w.iterates(scope, s.Exprs)
		w.block(inner, s.Stmts)
	case *ast.ReturnStmt:
		w.exprs(scope, s.Exprs)
	case *ast.BreakStmt:
	default:
		w.report(stmt.Line(), "%T is not Lua 5.1", stmt) // goto and labels
	}
	return scope
}

// loop declares the variables of a loop. They need not be read.
func (w *walker) loop(scope *name, line int, texts ...string) *name {
	for _, text := range texts {
		scope = w.declare(scope, line, variable, text)
		scope.read = true
	}
	return scope
}

// iterates reports whether a loop iterates over a table that outlives the call. Then the
// values of the table outlive the call too.
func (w *walker) iterates(scope *name, exprs []ast.Expr) bool {
	call, ok := exprs[0].(*ast.FuncCallExpr)
	return ok && len(call.Args) == 1 && w.outlives(scope, call.Args[0])
}

// outlives reports whether an expression is a table that outlives the call, or a part of one.
func (w *walker) outlives(scope *name, expr ast.Expr) bool {
	root, _ := w.root(expr)
	n := w.lookup(scope, root)
	return n != nil && n.top
}

// root returns the name at the beginning of a.b[c], "" if there is no name, and how many
// fields follow.
func (w *walker) root(expr ast.Expr) (string, int) {
	switch e := expr.(type) {
	case *ast.IdentExpr:
		return e.Value, 0
	case *ast.AttrGetExpr:
		root, n := w.root(e.Object)
		return root, n + 1
	}
	return "", 0
}

func (w *walker) localAssign(scope *name, s *ast.LocalAssignStmt) *name {
	if isLocalFunction(s) {
		f := w.declare(scope, s.Line(), fn, s.Names[0])
		w.inside = append(w.inside, f)
		w.expr(f, s.Exprs[0])
		w.inside = w.inside[:len(w.inside)-1]
		return f
	}
	w.exprs(scope, s.Exprs) // local x = x means the outer x
	outer := scope
	for i, text := range s.Names {
		scope = w.declare(scope, s.Line(), variable, text)
		if i < len(s.Exprs) {
			scope.top = scope.top || w.outlives(outer, s.Exprs[i])
		}
	}
	return scope
}

// isLocalFunction reports whether a statement is "local function f", which sees itself, and
// not "local f = function". The parser makes the same node of both. Only the first has a
// last line.
func isLocalFunction(s *ast.LocalAssignStmt) bool {
	return s.LastLine() != 0
}

func (w *walker) assign(scope *name, target ast.Expr) {
	text, fields := w.root(target)
	n := w.lookup(scope, text)
	if fields == 0 && n == nil {
		w.report(target.Line(), "%s is assigned and not local", text)
	} else if fields > 0 {
		w.expr(scope, target)
	}
	// To assign another value to a local that holds a part of such a table changes only the local.
	if w.depth > 0 && n != nil && n.top && (fields > 0 || n.atTop) {
		w.remembered = append(w.remembered, finding{target.Line(), text + " is changed by a function"})
	}
}

// funcDef walks "function f", "function t.f" and "function t:f".
func (w *walker) funcDef(scope *name, s *ast.FuncDefStmt) {
	if s.Name.Func != nil {
		w.assign(scope, s.Name.Func)
		if target, ok := s.Name.Func.(*ast.AttrGetExpr); ok {
			object, _ := w.root(target.Object)
			if key, ok := target.Key.(*ast.StringExpr); ok {
				if n := w.lookup(scope, object); n != nil && n.atTop {
					w.methods = append(w.methods, object+"."+key.Value)
				}
			}
		}
		w.expr(scope, s.Func)
		return
	}
	w.expr(scope, s.Name.Receiver)
	self := w.declare(scope, s.Func.Line(), parameter, "self")
	self.read = true
	w.expr(self, s.Func)
}

func (w *walker) exprs(scope *name, exprs []ast.Expr) {
	for _, e := range exprs {
		w.expr(scope, e)
	}
}

func (w *walker) expr(scope *name, expr ast.Expr) {
	switch e := expr.(type) {
	case nil: // no step, no key, no receiver
	case *ast.IdentExpr:
		w.use(scope, e)
	case *ast.FunctionExpr:
		w.function(scope, e)
	case *ast.AttrGetExpr:
		w.field(scope, e)
		w.exprs(scope, []ast.Expr{e.Object, e.Key})
	case *ast.TableExpr:
		for _, f := range e.Fields {
			w.exprs(scope, []ast.Expr{f.Key, f.Value})
		}
	case *ast.FuncCallExpr:
		w.mutator(scope, e)
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
		w.report(expr.Line(), "%T is unknown to this test", expr)
	}
}

func (w *walker) function(scope *name, e *ast.FunctionExpr) {
	f := function{line: e.Line(), lines: e.LastLine() - e.Line() + 1, parameters: len(e.ParList.Names)}
	if e.ParList.HasVargs {
		f.parameters++
	}
	w.functions = append(w.functions, f)
	w.depth++
	w.block(w.declare(scope, e.Line(), parameter, e.ParList.Names...), e.Stmts)
	w.depth--
}

// field records which field is read of a table at the top of the file.
func (w *walker) field(scope *name, e *ast.AttrGetExpr) {
	object, ok := e.Object.(*ast.IdentExpr)
	key, isText := e.Key.(*ast.StringExpr)
	if !ok || !isText {
		return
	}
	if n := w.lookup(scope, object.Value); n != nil && n.top {
		w.fields[object.Value] = append(w.fields[object.Value], key.Value)
	}
}

// mutator finds table.insert, remove and sort of tables that outlive the call.
func (w *walker) mutator(scope *name, e *ast.FuncCallExpr) {
	target, ok := e.Func.(*ast.AttrGetExpr)
	if !ok || w.depth == 0 || len(e.Args) == 0 {
		return
	}
	object, _ := w.root(target.Object)
	key, _ := target.Key.(*ast.StringExpr)
	if object != "table" || key == nil || !slices.Contains([]string{"insert", "remove", "sort"}, key.Value) {
		return
	}
	if w.outlives(scope, e.Args[0]) {
		text, _ := w.root(e.Args[0])
		w.remembered = append(w.remembered, finding{e.Line(), text + " is changed by a function"})
	}
}

func (w *walker) use(scope *name, e *ast.IdentExpr) {
	n := w.lookup(scope, e.Value)
	switch {
	case n == nil && !slices.Contains(given, e.Value):
		w.report(e.Line(), "%s is not defined", e.Value)
	case n != nil && !slices.Contains(w.inside, n): // a function that only calls itself is unused
		n.read = true
	}
}

func TestTheWalkerFindsUndefinedNames(t *testing.T) {
	finds(t, func(f findings) []finding { return f.undefined }, []claim{
		{"a global of Redis", "return redis.call(tonumber('1'), cjson.encode({}))", nil},
		{"globals that only scripts have", "return KEYS[1], ARGV[1]", []string{"1: KEYS is not defined", "1: ARGV is not defined"}},
		{"a global that Redis does not have", "return os.time()", []string{"1: os is not defined"}},
		{"an unknown function", "\nfinsh(1)", []string{"2: finsh is not defined"}},
		{"a field is not a name", "local t = {}\nreturn t.x.y, t['z']", nil},
		{"a key is a name", "local t = {}\nreturn t[x]", []string{"2: x is not defined"}},
		{"a field in a table is not a name, its value is", "return {a = b, [c] = 1, d}",
			[]string{"1: b is not defined", "1: c is not defined", "1: d is not defined"}},
		{"a method is not a name, its arguments are", "local s = ''\nreturn s:rep(n)", []string{"2: n is not defined"}},
		{"a receiver is a name", "return s:rep(1)", []string{"1: s is not defined"}},

		{"a local", "local a, b = 1\nreturn a + b", nil},
		{"a local is not declared in its own value", "local a = a", []string{"1: a is not defined"}},
		{"a local is not declared before its statement", "local b = a\nlocal a = 1", []string{"1: a is not defined"}},
		{"a local hides another until its block ends", "local a = 1\ndo local a, b = a, 2 end\nreturn a, b", []string{"3: b is not defined"}},
		{"a local of a branch", "if 1 then local a = 1 elseif a then return a else return a end",
			slices.Repeat([]string{"1: a is not defined"}, 3)},
		{"a local of a while", "while a do local a = 1 end\nreturn a", []string{"1: a is not defined", "2: a is not defined"}},
		{"the condition of a repeat sees its body", "repeat local a = 1 until a == 1", nil},
		{"code after a repeat does not see its body", "repeat local a = 1 until true\nreturn a", []string{"2: a is not defined"}},

		{"a parameter", "local f = function(a, ...) return a, ... end\nreturn a, f", []string{"2: a is not defined"}},
		{"an upvalue", "local a = 1\nreturn function() return function() return a end end", nil},
		{"a local function sees itself", "local function f(n) return n and f(n - 1) end\nreturn f", nil},
		{"a function that is a value does not see itself", "local f = function(n)\n  return f(n)\nend\nreturn f", []string{"2: f is not defined"}},
		{"a local function does not see the next", "local function f() return g() end\nlocal function g() end\nreturn f, g",
			[]string{"1: g is not defined"}},
		{"a local declared ahead is seen", "local g\nlocal function f() return g() end\ng = function() end\nreturn f", nil},

		{"a loop's number", "for i = 1, 2 do local a = i end\nreturn i", []string{"2: i is not defined"}},
		{"a loop's bounds do not see it", "for i = i, i, i do end", slices.Repeat([]string{"1: i is not defined"}, 3)},
		{"a loop's names", "for k, v in pairs({}) do local a = k .. v end\nreturn k", []string{"2: k is not defined"}},
		{"a loop's list does not see them", "for k in pairs(k) do end", []string{"1: k is not defined"}},

		{"an assignment to a local", "local a\na = 1", nil},
		{"an assignment to a global", "local a\na, b = 1, 2", []string{"2: b is assigned and not local"}},
		{"an assignment to a global of Redis", "tonumber = nil", []string{"1: tonumber is assigned and not local"}},
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
	})
}

func TestTheWalkerFindsUnusedNames(t *testing.T) {
	finds(t, func(f findings) []finding { return f.unused }, []claim{
		{"called", "local function f() end\nf()", nil},
		{"passed on", "local function f() end\nreturn pcall(f)", nil},
		{"called by another", "local function f() end\nlocal function g() f() end\ng()", nil},
		{"never called", "local function f() end\n", []string{"1: f is never used"}},
		{"called only by itself", "local function f() return f() end", []string{"1: f is never used"}},
		{"called only by its inner function", "local function f()\n  local function g() f() end\n  g()\nend",
			[]string{"1: f is never used"}},
		{"another function of its name is called", "local function f() end\nlocal function f() end\nf()", []string{"1: f is never used"}},
		{"called by a function that is never called", "local function f() end\nlocal function g() f() end", []string{"2: g is never used"}},
		{"a local", "local a, b = 1, 2\nreturn a", []string{"1: b is never used"}},
		{"a local that is only assigned", "local a\na = 1", []string{"1: a is never used"}},
		{"a local whose field is assigned: another table can hold it", "local a = {}\na.b = 1", nil},
		{"a placeholder", "local _, b = 1, 2\nreturn b", nil},
		{"a parameter", "local function f(a, b) return b end\nreturn f", []string{"1: a is never used"}},
		{"a parameter that is a placeholder", "local function f(_, b) return b end\nreturn f", nil},
		{"variables of a loop", "for k, v in pairs({}) do end\nfor i = 1, 2 do end", nil},
		{"a file that it uses", "-- @use p/a\n-- @use p/b\nreturn a()", []string{"2: b is never used"}},
		{"what other files use of it", "local function s() end", nil},
	})
}

func TestTheWalkerFindsChangesThatOutliveACall(t *testing.T) {
	const known = "local known, n = {}, 0\n"
	finds(t, func(f findings) []finding { return f.remembered }, []claim{
		{"while the file is loaded", known + "known.a = 1\nfor i = 1, 2 do known[i] = n end", nil},
		{"a table of functions", "local s = {}\nfunction s.f(a) return a end", nil},
		{"a local of the function", known + "local function f() local a = {}\n  a.b = known\n  a = n\nend", nil},
		{"a parameter", known + "local function f(a) a.b = known end", nil},
		{"an assignment", known + "local function f()\n  n = n + 1\nend", []string{"3: n is changed by a function"}},
		{"an assignment among several", known + "local function f(a)\n  a.b, n = 1, 2\nend", []string{"3: n is changed by a function"}},
		{"an assignment into a table", known + "local function f(a) known[a] = 1 end", []string{"2: known is changed by a function"}},
		{"an assignment into a table of a table", known + "local function f(a) known.b[a] = 1 end", []string{"2: known is changed by a function"}},
		{"an assignment in an inner function", known + "return function() return function() n = 1 end end", []string{"2: n is changed by a function"}},
		{"an assignment into a table of another file", "-- @use p/a\nlocal function f() a.b = 1 end", []string{"2: a is changed by a function"}},
		{"a function that a function adds to a table", "local s = {}\nlocal function f() function s.g() end end", []string{"2: s is changed by a function"}},
		{"an assignment into a part of a table", known + "local function f(a)\n  local of = known[a]\n  of.b = 1\nend", []string{"4: of is changed by a function"}},
		{"an assignment into a part of a part", known + "local function f(a)\n  local of = known[a]\n  local b = of.b\n  b.c = 1\nend", []string{"5: b is changed by a function"}},
		{"another value for a local that was a part", known + "local function f(a)\n  local of = known[a]\n  of = 1\n  return of\nend", nil},
		{"an assignment into a value of a loop", known + "local function f()\n  for _, of in pairs(known) do of.b = 1 end\nend", []string{"3: of is changed by a function"}},
		{"a call of table.insert or table.sort", known + "local function f(a)\n  table.insert(known, a)\n  table.sort(known.b)\n  table.concat(known)\nend",
			[]string{"3: known is changed by a function", "4: known is changed by a function"}},
	})
}

func TestTheWalkerFindsNamesThatHideAUsedFile(t *testing.T) {
	finds(t, func(f findings) []finding { return f.hidden }, []claim{
		{"no name hides it", "-- @use p/a\nlocal b = a", nil},
		{"a field is not a name", "-- @use p/a\nlocal b = {a = a}", nil},
		{"a local", "-- @use p/a\nlocal function f()\n  local a = 1\nend", []string{"3: a hides what the file uses"}},
		{"a parameter", "-- @use p/a\nlocal function f(a) end", []string{"2: a hides what the file uses"}},
		{"a variable of a loop", "-- @use p/a\nfor a = 1, 2 do end", []string{"2: a hides what the file uses"}},
		{"another file of its name", "-- @use p/a\n-- @use q/a\nreturn a", []string{"2: a hides what the file uses"}},
	})
}

func TestTheWalkerMeasuresFunctions(t *testing.T) {
	got := inspectText(t, "local function s(a, b, ...)\n  return a, b, function()\n  end\nend").functions
	if want := []function{{1, 4, 3}, {2, 2, 0}}; !slices.Equal(got, want) {
		t.Errorf("found %+v, want %+v", got, want)
	}
}

// claim is a text, and what the walker finds in it.
type claim struct {
	claim, source string
	want          []string
}

func finds(t *testing.T, what func(findings) []finding, claims []claim) {
	t.Helper()
	for _, test := range claims {
		t.Run(test.claim, func(t *testing.T) {
			got := listed(what(inspectText(t, test.source)))
			if !slices.Equal(got, test.want) {
				t.Errorf("%s\nfound %q\nwant  %q", test.source, got, test.want)
			}
		})
	}
}

// inspectText inspects a text as the file p/s, of which another file uses s.
func inspectText(t *testing.T, text string) findings {
	t.Helper()
	f, err := parse("p/s", "lua/p/s.lua", text+"\nlocal s = 0")
	if err != nil {
		t.Fatal(err)
	}
	return inspect(t, f, text, []string{"s"})
}

func listed(all []finding) []string {
	var lines []string
	for _, f := range all {
		lines = append(lines, f.String())
	}
	return lines
}
