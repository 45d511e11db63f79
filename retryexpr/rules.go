package retryexpr

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/curfew-dev/curfew/refusal"
)

// retryRules checks the tree of an expression before the library does anything with it. A tree can
// contain only the nodes that are named here. They do not loop, do not make large values from small
// ones, and always give the same result. retryRules also checks that an expression reads only its
// own task.
type retryRules struct {
	kind, source string
	seen         int // nodes; a node that is in two places is checked and counted twice
	calls        int
	steps        int // of regular expressions
	patterns     int // and their bytes
	parameters   []string
	everything   bool
	sums         []*ast.BinaryNode  // checked when the types are known
	strings      []*ast.BuiltinNode // checked when the types are known
}

// retryFunctions are the functions that an expression can call. Each reads its arguments at most once.
var retryFunctions = []string{"abs", "ceil", "float", "floor", "int", "len", "lower", "max", "min", "round", "string", "upper"}

// maxCalls bounds the calls of functions, since upper and lower copy the whole text.
const maxCalls = 20

// maxRange is the greatest length of a range in x in a..b. Package expr makes a list of it.
const maxRange = 1000

func (r *retryRules) check(slot *ast.Node) error {
	// a ?: b and a < b < c put a node in two places. So each level can double the work of all
	// later steps.
	if r.seen++; r.seen > maxNodes {
		return refuseRetry(r.source, "it has more than %d parts: decide in the handler, by worker.Fail and worker.Discard", maxNodes)
	}
	switch n := (*slot).(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode:
		return nil
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode:
		return r.checkValue(slot)
	case *ast.UnaryNode:
		return r.check(&n.Node)
	case *ast.BinaryNode:
		return r.checkBinary(n)
	case *ast.ConditionalNode:
		return r.checkAll(&n.Cond, &n.Exp1, &n.Exp2)
	case *ast.BuiltinNode:
		return r.checkCall(n)
	case *ast.SliceNode:
		parts := []*ast.Node{&n.Node}
		for _, bound := range []*ast.Node{&n.From, &n.To} {
			if *bound != nil {
				parts = append(parts, bound)
			}
		}
		return r.checkAll(parts...)
	case *ast.ArrayNode:
		return refuseAt(r.source, n, "a list is allowed only on the right side of in, as in tasks.%s.code in [1, 75]", r.kind)
	case *ast.CallNode:
		name, _ := n.Callee.(*ast.IdentifierNode)
		if name == nil {
			return refuseAt(r.source, n, "there are no methods: use %s, contains, startsWith, endsWith, matches", strings.Join(retryFunctions, ", "))
		}
		return r.unknownFunction(n, name.Value)
	case nil:
		return refuseRetry(r.source, "it cannot be compiled: write a condition such as tasks.%s.code == 75", r.kind)
	}
	return refuseAt(r.source, *slot, "variables, maps, predicates and sequences are not allowed in retry expressions: write one condition such as tasks.%s.code == 75", r.kind)
}

func (r *retryRules) checkAll(slots ...*ast.Node) error {
	for _, slot := range slots {
		if err := r.check(slot); err != nil {
			return err
		}
	}
	return nil
}

func (r *retryRules) checkCall(n *ast.BuiltinNode) error {
	if !slices.Contains(retryFunctions, n.Name) {
		return r.unknownFunction(n, n.Name)
	}
	if r.calls++; r.calls > maxCalls {
		return refuseAt(r.source, n, "it calls more than %d functions: decide in the handler, by worker.Fail and worker.Discard", maxCalls)
	}
	if n.Name == "string" && len(n.Arguments) == 1 {
		r.strings = append(r.strings, n)
	}
	for i := range n.Arguments {
		if err := r.check(&n.Arguments[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *retryRules) unknownFunction(n ast.Node, name string) error {
	return refuseAt(r.source, n, "there is no function %q in retry expressions: use %s", refusal.Clip(name), strings.Join(retryFunctions, ", "))
}

func (r *retryRules) checkBinary(n *ast.BinaryNode) error {
	switch n.Operator {
	case "+":
		r.sums = append(r.sums, n)
	case "..":
		return refuseAt(r.source, n, "a range is allowed only on the right side of in, as in tasks.%s.code in 1..9", r.kind)
	case "in":
		return r.checkIn(n)
	case "matches":
		return r.checkPattern(n)
	}
	if err := r.checkAll(&n.Left, &n.Right); err != nil {
		return err
	}
	if n.Operator == "==" || n.Operator == "!=" {
		return r.checkPhases(n, n.Left, n.Right)
	}
	return nil
}

// checkIn allows a list of literals or a range on the right side of in. They are allowed nowhere
// else, so that no text is copied many times.
func (r *retryRules) checkIn(n *ast.BinaryNode) error {
	if err := r.check(&n.Left); err != nil {
		return err
	}
	switch right := n.Right.(type) {
	case *ast.ArrayNode:
		for _, item := range right.Nodes {
			if !literal(item) {
				return refuseAt(r.source, n, "a list can contain only numbers and texts: write other comparisons with or")
			}
			r.seen++
		}
		return r.checkPhases(n, append([]ast.Node{n.Left}, right.Nodes...)...)
	case *ast.BinaryNode:
		if right.Operator != ".." {
			break
		}
		from, _ := right.Left.(*ast.IntegerNode)
		to, _ := right.Right.(*ast.IntegerNode)
		if from == nil || to == nil || to.Value > from.Value+maxRange {
			return refuseAt(r.source, right, "a range must go from a number, 0 or more, to a number that is at most %d greater: write a <= x and x <= b", maxRange)
		}
		r.seen += 2
		return nil
	}
	return r.check(&n.Right)
}

func literal(node ast.Node) bool {
	if minus, ok := node.(*ast.UnaryNode); ok && minus.Operator == "-" {
		node = minus.Node
	}
	switch node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		return true
	}
	return false
}

// retryPhases are the words that Record.Phase returns. A comparison with another word is always false.
var retryPhases = []string{"Created", "Ready", "Running", "Suspended", "Succeeded", "Failed", "Error", "Timeout", "Cancelled"}

func (r *retryRules) checkPhases(at ast.Node, nodes ...ast.Node) error {
	if !slices.ContainsFunc(nodes, isPhase) {
		return nil
	}
	for _, node := range nodes {
		if text, ok := node.(*ast.StringNode); ok && !slices.Contains(retryPhases, text.Value) {
			return refuseAt(r.source, at, `no attempt has the phase %q: write "Failed", "Error" or "Timeout"`, refusal.Clip(text.Value))
		}
	}
	return nil
}

func isPhase(node ast.Node) bool {
	member, ok := node.(*ast.MemberNode)
	if !ok {
		return false
	}
	of, ok := member.Node.(*ast.IdentifierNode)
	return ok && of.Value == taskVariable && textOf(member.Property) == "phase"
}
