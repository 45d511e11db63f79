package structure

import (
	"io/fs"
	"reflect"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	luaparse "github.com/yuin/gopher-lua/parse"
)

// luaFiles parses each file of the folder lua. Lua files of the benchmarks are left out: they
// change no state of Curfew.
func luaFiles(fsys fs.FS, do func(name string, chunk []ast.Stmt)) error {
	return each(fsys, ".lua", func(name string, text []byte) error {
		if room(name) != "lua" {
			return nil
		}
		chunk, err := luaparse.Parse(strings.NewReader(string(text)), name)
		if err == nil {
			do(name, chunk)
		}
		return err
	})
}

// visitEach visits a file. function is where a node is, such as "lua/task/finish.lua: finish": the function or table at the top
// of the file whose definition the node is in, or of which it defines a function.
func visitEach(file string, chunk []ast.Stmt, f func(function string, node any)) {
	for _, stmt := range chunk {
		function := file
		switch s := stmt.(type) {
		case *ast.LocalAssignStmt:
			function += ": " + s.Names[0]
		case *ast.FuncDefStmt:
			table, _, _ := strings.Cut(dotted(s.Name.Func), ".")
			function += ": " + table
		}
		visit(stmt, func(node any) { f(function, node) })
	}
}

// visit calls f with every statement and expression below a node, the outer ones first.
func visit(node any, f func(node any)) {
	walk(reflect.ValueOf(node), f)
}

func walk(v reflect.Value, f func(node any)) {
	switch v.Kind() {
	case reflect.Interface:
		walk(v.Elem(), f)
	case reflect.Pointer:
		if !v.IsNil() {
			f(v.Interface())
			walk(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walk(v.Field(i), f)
			}
		}
	}
}

// dotted returns the text of an expression of names and fields, such as redis.call, and ""
// for any other expression.
func dotted(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.IdentExpr:
		return e.Value
	case *ast.AttrGetExpr:
		if object, key := dotted(e.Object), literal(e.Key); object != "" && key != "" {
			return object + "." + key
		}
	}
	return ""
}

// literal returns the value of a string constant, and "" for any other expression.
func literal(expr ast.Expr) string {
	if s, ok := expr.(*ast.StringExpr); ok {
		return s.Value
	}
	return ""
}
