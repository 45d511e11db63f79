package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
)

var goShifted = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&"}

// locks only cost time if they are left out: a test waits until its limit. Without them a test fails by chance.
var locks = []string{"Lock", "Unlock", "RLock", "RUnlock", "Wait", "Add", "Done"}

// goMutants returns all edits of a file.
func goMutants(file, text string) ([]mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	g := &goCode{file: file, text: text, set: set}
	ast.Inspect(tree, g.visit)
	return g.list, nil
}

// goCode collects the edits of a file.
type goCode struct {
	file, text string
	set        *token.FileSet
	list       []mutant
}

func (g *goCode) at(p token.Pos) int { return g.set.Position(p).Offset }

func (g *goCode) source(n ast.Node) string { return g.text[g.at(n.Pos()):g.at(n.End())] }

func (g *goCode) add(kind string, from, to token.Pos, text string) {
	e := textEdit{g.at(from), g.at(to), text}
	g.list = append(g.list, mutant{file: g.file, kind: kind, line: g.set.Position(from).Line, edit: e})
}

func (g *goCode) visit(n ast.Node) bool {
	switch n.(type) {
	case *ast.DeferStmt, *ast.ImportSpec, *ast.ArrayType:
		return false
	}
	switch n := n.(type) {
	case *ast.IfStmt:
		g.add("negate", n.Cond.Pos(), n.Cond.End(), "!("+g.source(n.Cond)+")")
	case *ast.BinaryExpr:
		if text := goShifted[n.Op]; text != "" {
			kind := "compare"
			if n.Op == token.LAND || n.Op == token.LOR {
				kind = "logic"
			}
			g.add(kind, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), text)
		}
	case *ast.BasicLit:
		if i, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
			g.add("constant", n.Pos(), n.End(), fmt.Sprint(i+1))
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !slices.Contains(locks, called(call)) {
			g.add("drop call", n.Pos(), n.End(), "")
		}
	case *ast.IncDecStmt:
		if _, field := n.X.(*ast.SelectorExpr); field {
			g.add("drop assignment", n.Pos(), n.End(), "")
		}
	case *ast.AssignStmt:
		if _, field := n.Lhs[0].(*ast.SelectorExpr); field && n.Tok != token.DEFINE {
			g.add("drop assignment", n.Pos(), n.End(), "")
		}
	}
	return true
}

// called returns the name of the function of a call, without its package or receiver.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}
