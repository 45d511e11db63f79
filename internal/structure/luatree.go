package structure

import (
	"io/fs"
	"reflect"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	luaparse "github.com/yuin/gopher-lua/parse"
)

// luaFiles has each Lua file of the calls parsed. Measurements have some of their own,
// which change no state of ours.
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

// visit calls f with every statement and expression below a node, an outer one before
// what is in it.
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

// dotted is how an expression of names and fields is written, as redis.call; "" for any
// other expression.
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

// literal is a string as it stands, "" for any other expression.
func literal(expr ast.Expr) string {
	if s, ok := expr.(*ast.StringExpr); ok {
		return s.Value
	}
	return ""
}
