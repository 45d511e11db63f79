package expr

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/curfew-dev/curfew/refusal"
)

// Limits of an expression. With the rules below they bound an evaluation to some passes over its operands.
const (
	maxSource    = 4 << 10 // bytes
	maxNodes     = 300     // nodes of the tree
	maxCosts     = 20      // parts that take time for each byte of their operands
	memoryBudget = 10_000  // elements of the ranges and lists that one evaluation makes
	quoted       = 160     // bytes of an expression, or of a message of the library, that an error quotes
)

// rules check the tree of an expression before the library does anything with it. A tree can contain only the nodes that are
// named here. They do not loop, do not make large values from small ones, and always give the same result.
type rules struct {
	language
	nodes    int // a node that is in two places is checked and counted twice
	costs    int
	steps    int // of regular expressions
	patterns int // and their bytes
}

// language is what the two languages do not share.
type language interface {
	words() words
	// variable checks a variable with the members that are read of it: an *ast.IdentifierNode, *ast.MemberNode or *ast.ChainNode.
	// It can replace the node.
	variable(r *rules, slot *ast.Node) error
	// call notes a call of an allowed function.
	call(n ast.Node)
	// operator checks what the language allows of an operator. If done is false, the operands are still to be checked.
	operator(r *rules, n *ast.BinaryNode) (done bool, err error)
	// types checks the rules that need the types of the nodes.
	types(root ast.Node) error
	// refuse returns the error for a part of the expression, or for the whole if there is no node.
	refuse(at ast.Node, format string, args ...any) error
	// library returns the error for an expression that the library refuses.
	library(err error) error
}

// words are the functions of a language, and its part of the errors.
type words struct {
	functions []string // that can be called; each reads its arguments at most once
	costs     string   // the parts that take time for each byte of their operands
	text      string   // an example of a text
	instead   string   // what to do if an expression is too large
	lists     string   // why a list is refused; "": it is allowed
	ranges    string   // why a range is refused
	other     string   // why any other node is refused
}

func (r *rules) check(slot *ast.Node) error {
	// a ?: b and a < b < c put a node in two places. So each level can double the work of all later steps.
	if err := r.count(); err != nil {
		return err
	}
	switch n := (*slot).(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode:
		return nil
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode:
		return r.variable(r, slot)
	case *ast.UnaryNode:
		return r.check(&n.Node)
	case *ast.BinaryNode:
		return r.checkBinary(n)
	case *ast.ConditionalNode:
		return r.checkAll(&n.Cond, &n.Exp1, &n.Exp2)
	case *ast.ArrayNode:
		return r.checkList(n)
	case *ast.SliceNode:
		return r.checkSlice(n)
	case *ast.BuiltinNode:
		return r.checkCall(n, n.Name, n.Arguments)
	case *ast.CallNode: // a function that is not the library's, or a method
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			return r.checkCall(n, name.Value, n.Arguments)
		}
		return r.refuse(n, "there are no methods: use %s, contains, startsWith, endsWith, matches", strings.Join(r.words().functions, ", "))
	case nil:
		return r.refuse(nil, "it cannot be compiled: write a condition such as %s == 'x'", r.words().text)
	}
	return r.refuse(*slot, "%s", r.words().other)
}

// count counts a node.
func (r *rules) count() error {
	if r.nodes++; r.nodes > maxNodes {
		return r.refuse(nil, "it has more than %d parts: %s", maxNodes, r.words().instead)
	}
	return nil
}

// cost counts a part that takes time for each byte of its operands.
func (r *rules) cost(n ast.Node) error {
	if r.costs++; r.costs > maxCosts {
		return r.refuse(n, "it has more than %d %s: %s", maxCosts, r.words().costs, r.words().instead)
	}
	return nil
}

func (r *rules) checkAll(slots ...*ast.Node) error {
	for _, slot := range slots {
		if err := r.check(slot); err != nil {
			return err
		}
	}
	return nil
}

func (r *rules) checkSlice(n *ast.SliceNode) error {
	parts := []*ast.Node{&n.Node}
	for _, bound := range []*ast.Node{&n.From, &n.To} {
		if *bound != nil { // not an open end
			parts = append(parts, bound)
		}
	}
	return r.checkAll(parts...)
}

func (r *rules) checkList(n *ast.ArrayNode) error {
	if why := r.words().lists; why != "" {
		return r.refuse(n, "%s", why)
	}
	for i := range n.Nodes {
		if err := r.check(&n.Nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *rules) checkCall(n ast.Node, name string, arguments []ast.Node) error {
	if !slices.Contains(r.words().functions, name) {
		return r.refuse(n, "there is no function %q: use %s", refusal.Clip(name), strings.Join(r.words().functions, ", "))
	}
	if err := r.cost(n); err != nil {
		return err
	}
	r.call(n)
	for i := range arguments {
		if err := r.check(&arguments[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *rules) checkBinary(n *ast.BinaryNode) error {
	if n.Operator == ".." {
		return r.refuse(n, "%s", r.words().ranges)
	}
	if done, err := r.operator(r, n); err != nil || done {
		return err
	}
	if n.Operator == "matches" {
		return r.checkPattern(n)
	}
	return r.checkAll(&n.Left, &n.Right)
}
