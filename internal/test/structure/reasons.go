package structure

import (
	"fmt"
	goast "go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// verbs are the words with which the reason of a refusal begins. The name of the field is its subject.
var verbs = []string{"is", "are", "must", "can", "cannot", "may", "needs", "has", "have", "would", "ends", "belongs", "counts", "names"}

// valueFirst matches the value of the field, which can stand before the verb.
var valueFirst = regexp.MustCompile(`^%[qvd] `)

// reasons finds refusals whose reason does not begin with a verb. refusal.InvalidError prints the field and the reason.
func reasons(fsys fs.FS) ([]string, error) {
	var found []string
	check := func(name string, line int, reason string) {
		reason = valueFirst.ReplaceAllString(reason, "")
		if first, _, _ := strings.Cut(reason, " "); !slices.Contains(verbs, first) && first != "%s" { // %s: made elsewhere
			found = append(found, fmt.Sprintf("%s:%d: the reason of a refusal begins with %q: its verb must follow the field", name, line, first))
		}
	}
	sources, err := goFiles(fsys)
	for _, s := range sources {
		goast.Inspect(s.file, func(n goast.Node) bool {
			if call, ok := n.(*goast.CallExpr); ok && len(call.Args) > 1 {
				method, ok := call.Fun.(*goast.SelectorExpr)
				if reason := beginning(call.Args[1]); ok && method.Sel.Name == "Invalid" && reason != "" {
					check(s.name, s.line(n.Pos()), reason)
				}
			}
			return true
		})
	}
	if err != nil {
		return nil, err
	}
	err = luaFiles(fsys, func(name string, chunk []ast.Stmt) {
		visit(chunk, func(node any) {
			if reason := reasonInLua(node); reason != nil {
				check(name, reason.Line(), luaBeginning(reason))
			}
		})
	})
	return found, err
}

// beginning returns the text of a string, or of the first of several that are added; "" for any other expression.
func beginning(e goast.Expr) string {
	if sum, ok := e.(*goast.BinaryExpr); ok {
		return beginning(sum.X)
	}
	if s, ok := e.(*goast.BasicLit); ok && s.Kind == token.STRING {
		text, _ := strconv.Unquote(s.Value)
		return text
	}
	return ""
}

// reasonInLua returns the reason of a refusal, if a node is one whose text is written there: {"INVALID", field, reason},
// return field, reason, or field, why = "name", reason.
func reasonInLua(node any) ast.Expr {
	var values []ast.Expr
	switch n := node.(type) {
	case *ast.TableExpr:
		for _, field := range n.Fields {
			values = append(values, field.Value)
		}
		if at := slices.IndexFunc(values, func(e ast.Expr) bool { return literal(e) == "INVALID" }); at >= 0 {
			values = values[at+1:]
		} else {
			values = nil
		}
	case *ast.ReturnStmt:
		if len(n.Exprs) == 2 && (literal(n.Exprs[0]) != "" || dotted(n.Exprs[0]) == "name") { // others do not return a field
			values = n.Exprs
		}
	case *ast.AssignStmt:
		if len(n.Lhs) == 2 && strings.HasSuffix("."+dotted(n.Lhs[1]), ".why") {
			values = n.Rhs
		}
	}
	if len(values) != 2 {
		return nil
	}
	if _, sum := values[1].(*ast.StringConcatOpExpr); sum || strings.Contains(literal(values[1]), " ") {
		return values[1]
	}
	return nil // made elsewhere
}

// luaBeginning returns the text of a string, or of the first of several that are concatenated; "" for any other expression.
func luaBeginning(e ast.Expr) string {
	if sum, ok := e.(*ast.StringConcatOpExpr); ok {
		return luaBeginning(sum.Lhs)
	}
	return literal(e)
}
