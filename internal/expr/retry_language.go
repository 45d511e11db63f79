package expr

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// retryLanguage is the language of retry expressions. An expression reads only its own task, and adds no texts.
type retryLanguage struct {
	kind, source string
	parameters   []string           // the outputs.parameters that it reads by name
	everything   bool               // it also reads all of them, or one whose name is computed
	sums         []*ast.BinaryNode  // checked when the types are known
	strings      []*ast.BuiltinNode // checked when the types are known
}

// retryFunctions are the functions that a retry expression can call.
var retryFunctions = []string{"abs", "ceil", "float", "floor", "int", "len", "lower", "max", "min", "round", "string", "upper"}

// maxRange is the greatest length of a range in x in a..b. The library makes a list of it.
const maxRange = 1000

// readRetry compiles a retry expression.
func readRetry(kind, source string) (*retryExpression, error) {
	if !names.Valid(kind, "._-:/") {
		return nil, refusal.Invalid("kind", "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit", refusal.Clip(kind))
	}
	if err := checkSource(source); err != nil {
		return nil, err
	}
	text, err := flatNames(kind, source)
	if err != nil {
		return nil, err
	}
	l := &retryLanguage{kind: kind, source: source}
	program, err := compile(text, conf.New(exprScope{}), l)
	if err != nil {
		return nil, err
	}
	return &retryExpression{kind: kind, program: program, parameters: l.parameters, everything: l.everything}, nil
}

func checkSource(source string) error {
	switch {
	case strings.TrimSpace(source) == "":
		return refuseRetry(source, "it is empty: leave it out, or write true or false")
	case len(source) > maxSource:
		return refuseRetry(source, "it has %d bytes, the limit is %d: decide in the handler, by worker.Fail and worker.Discard", len(source), maxSource)
	case !utf8.ValidString(source):
		return refuseRetry(source, "it is not UTF-8: write other bytes as \\x escapes")
	}
	for i, c := range source {
		if unicode.IsControl(c) && c != '\n' && c != '\t' && c != '\r' {
			return refuseRetry(source, "it holds the control character %q at byte %d: remove it, or write it as an escape", c, i+1)
		}
	}
	return nil
}

// refuseRetry returns the error for a retry expression: why it is refused, and what to write.
func refuseRetry(source, format string, args ...any) error {
	return refusal.Invalid("retry expression", "%q is refused: "+format, append([]any{refusal.Clip(source)}, args...)...)
}

func (l *retryLanguage) refuse(node ast.Node, format string, args ...any) error {
	return refuseRetry(l.source, "%s"+format, append([]any{at(node)}, args...)...)
}

func (l *retryLanguage) library(err error) error {
	flat := "tasks." + l.kind
	text := strings.ReplaceAll(message(err), strings.Repeat("$", len(flat)), flat)
	return l.refuse(nil, "%s: write a condition such as %s.code == 75", text, flat)
}

func (l *retryLanguage) words() words {
	task := "tasks." + l.kind
	return words{
		functions: retryFunctions,
		costs:     "functions",
		text:      task + ".msg",
		instead:   "decide in the handler, by worker.Fail and worker.Discard",
		lists:     "a list is allowed only on the right side of in, as in " + task + ".code in [1, 75]",
		ranges:    "a range is allowed only on the right side of in, as in " + task + ".code in 1..9",
		other:     "variables, maps, predicates and sequences are not allowed in retry expressions: write one condition such as " + task + ".code == 75",
	}
}

func (l *retryLanguage) call(n ast.Node) {
	if call, ok := n.(*ast.BuiltinNode); ok && call.Name == "string" && len(call.Arguments) == 1 {
		l.strings = append(l.strings, call)
	}
}

func (l *retryLanguage) operator(r *rules, n *ast.BinaryNode) (done bool, err error) {
	switch n.Operator {
	case "+":
		l.sums = append(l.sums, n)
	case "in":
		return true, l.checkIn(r, n)
	case "==", "!=":
		if err := r.checkAll(&n.Left, &n.Right); err != nil {
			return true, err
		}
		return true, l.checkPhases(n, n.Left, n.Right)
	}
	return false, nil
}

// checkIn allows a list of literals or a range on the right side of in. They are allowed nowhere
// else, so that no text is copied many times.
func (l *retryLanguage) checkIn(r *rules, n *ast.BinaryNode) error {
	if err := r.check(&n.Left); err != nil {
		return err
	}
	switch right := n.Right.(type) {
	case *ast.ArrayNode:
		for _, item := range right.Nodes {
			if !literal(item) {
				return l.refuse(n, "a list can contain only numbers and texts: write other comparisons with or")
			}
			r.nodes++
		}
		return l.checkPhases(n, append([]ast.Node{n.Left}, right.Nodes...)...)
	case *ast.BinaryNode:
		if right.Operator != ".." {
			break
		}
		from, _ := right.Left.(*ast.IntegerNode)
		to, _ := right.Right.(*ast.IntegerNode)
		if from == nil || to == nil || to.Value > from.Value+maxRange {
			return l.refuse(right, "a range must go from a number, 0 or more, to a number that is at most %d greater: write a <= x and x <= b", maxRange)
		}
		r.nodes += 2
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

func (l *retryLanguage) checkPhases(at ast.Node, nodes ...ast.Node) error {
	if !slices.ContainsFunc(nodes, isPhase) {
		return nil
	}
	for _, node := range nodes {
		if text, ok := node.(*ast.StringNode); ok && !slices.Contains(retryPhases, text.Value) {
			return l.refuse(at, `no attempt has the phase %q: write "Failed", "Error" or "Timeout"`, refusal.Clip(text.Value))
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

func (l *retryLanguage) types(root ast.Node) error {
	for _, sum := range l.sums {
		if !yieldsNumber(sum.Left) && !yieldsNumber(sum.Right) {
			return l.refuse(sum, "+ adds numbers only: write int(…) around a number, and compare texts with contains, startsWith or endsWith")
		}
	}
	for _, call := range l.strings {
		if kind := call.Arguments[0].Type().Kind(); kind != reflect.String && kind != reflect.Bool && !yieldsNumber(call.Arguments[0]) {
			return l.refuse(call, "string takes a number, a bool or a text, but the type of its argument is not known: compare the value without string")
		}
	}
	switch root.Type().Kind() {
	case reflect.Bool, reflect.String, reflect.Interface:
		return nil // a string can be "true", and the type of a parameter is known at run time only
	}
	return l.refuse(nil, "its result is of type %v, but must be true or false: write a comparison such as tasks.%s.code == 75", root.Type(), l.kind)
}

func yieldsNumber(node ast.Node) bool {
	switch node.Type().Kind() {
	case reflect.Int, reflect.Int64, reflect.Float64:
		return true
	}
	return false
}
