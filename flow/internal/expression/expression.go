// Package expression evaluates the expressions of a definition: conditions, and the values of inputs. They are written in
// the language of github.com/expr-lang/expr, without what could take long: loops, and functions that make large values
// from small ones.
package expression

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/curfew-dev/curfew/flow/internal/value"
	"github.com/curfew-dev/curfew/internal/clip"
)

// Limits of an expression.
const (
	maxSource = 4 << 10
	maxNodes  = 300
	maxCosts  = 20 // functions, sums and patterns, which take time for each byte of their operands
)

// functions are the functions that an expression can call.
var functions = []string{"abs", "ceil", "float", "floor", "int", "keys", "len", "lower", "max", "min", "round", "string", "trim", "upper", "values"}

// language are the settings of package expr. Names of functions that are not allowed can be variables: last.
var language = settings()

func settings() []expr.Option {
	all := []expr.Option{expr.MaxNodes(maxNodes), expr.Optimize(false), expr.DisableAllBuiltins()}
	for _, name := range functions {
		all = append(all, expr.EnableBuiltin(name))
	}
	for name, own := range map[string]func(any) (any, error){"keys": keys, "values": members, "string": text} {
		all = append(all, expr.Function(name, func(arguments ...any) (any, error) { return own(arguments[0]) }, new(func(any) any)))
	}
	return all
}

// Expression is a compiled expression.
type Expression struct {
	source  string
	program *vm.Program
	reads   [][]string
}

// Compile compiles an expression that can read the given variables.
func Compile(source string, variables []string) (*Expression, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, errors.New("the expression is empty")
	case len(source) > maxSource:
		return nil, fmt.Errorf("the expression has %d bytes, the limit is %d", len(source), maxSource)
	}
	c := &checker{source: source, variables: variables}
	config := conf.CreateNew()
	for _, set := range language {
		set(config)
	}
	tree, err := parser.ParseWithConfig(source, config)
	if err != nil {
		return nil, plain(err)
	}
	if err := c.check(tree.Node); err != nil {
		return nil, err
	}
	program, err := expr.Compile(source, language...)
	if err != nil {
		return nil, plain(err)
	}
	return &Expression{source: source, program: program, reads: c.reads}, nil
}

// Reads returns what the expression reads: each path that begins with a variable, as its names. A path ends before the
// first name that is computed.
func (e *Expression) Reads() [][]string { return e.reads }

// String returns the source.
func (e *Expression) String() string { return e.source }

// Value evaluates the expression. A variable or a member that does not exist is nil. The value is canonical.
func (e *Expression) Value(variables map[string]any) (any, error) {
	room := value.MaxBytes
	return e.value(variables, &room)
}

// value evaluates the expression, and takes the bytes of what it yields from room.
func (e *Expression) value(variables map[string]any, room *int) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%q cannot be evaluated: %v", clip.Line(e.source, quoted), p)
		}
	}()
	v, err = expr.Run(e.program, variables)
	if err != nil {
		return nil, fmt.Errorf("%q cannot be evaluated: %w", clip.Line(e.source, quoted), plain(err))
	}
	if v, err = value.Canonical(v, room); err != nil {
		return nil, fmt.Errorf("%q cannot be evaluated: %w", clip.Line(e.source, quoted), err)
	}
	return v, nil
}

// Condition evaluates an expression that must be true or false.
func (e *Expression) Condition(variables map[string]any) (bool, error) {
	v, err := e.Value(variables)
	if err != nil {
		return false, err
	}
	holds, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%q yields %s, and must yield true or false", clip.Line(e.source, quoted), clip.Line(fmt.Sprint(v), quoted))
	}
	return holds, nil
}

// checker checks the tree of an expression. It allows only what it knows.
type checker struct {
	source    string
	variables []string
	reads     [][]string
	nodes     int
	costs     int
}

func (c *checker) check(node ast.Node) error {
	if c.nodes++; c.nodes > maxNodes {
		return fmt.Errorf("the expression has more than %d parts", maxNodes)
	}
	switch n := node.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode:
		return nil
	case *ast.IdentifierNode:
		return c.read(n)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.ChainNode:
		return c.check(n.Node)
	case *ast.UnaryNode:
		return c.check(n.Node)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.all(n.Cond, n.Exp1, n.Exp2)
	case *ast.ArrayNode:
		return c.all(n.Nodes...)
	case *ast.SliceNode:
		return c.all(n.Node, n.From, n.To)
	case *ast.BuiltinNode:
		return c.call(n, n.Name, n.Arguments)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.call(n, name.Value, n.Arguments)
		}
		return refuse(n, "there are no methods: use %s", strings.Join(functions, ", "))
	}
	return refuse(node, "variables of its own, maps and predicates are not allowed")
}

func (c *checker) all(nodes ...ast.Node) error {
	for _, n := range nodes {
		if n == nil {
			continue // the open end of a slice
		}
		if err := c.check(n); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) call(n ast.Node, name string, arguments []ast.Node) error {
	if !slices.Contains(functions, name) {
		return refuse(n, "there is no function %q: use %s", clip.Line(name, quoted), strings.Join(functions, ", "))
	}
	return errors.Join(c.cost(n), c.all(arguments...))
}

// cost counts a part whose time grows with its operands.
func (c *checker) cost(n ast.Node) error {
	if c.costs++; c.costs > maxCosts {
		return refuse(n, "there are more than %d functions, sums and patterns", maxCosts)
	}
	return nil
}

func (c *checker) binary(n *ast.BinaryNode) error {
	switch n.Operator {
	case "..":
		return refuse(n, "ranges are not allowed: compare with <= and >=")
	case "+", "**":
		if err := c.cost(n); err != nil {
			return err
		}
	case "matches":
		pattern, ok := n.Right.(*ast.StringNode)
		if !ok || len(pattern.Value) > 128 {
			return refuse(n, "the right side of matches must be a pattern in quotes, of up to 128 bytes")
		}
		if _, err := syntax.Parse(pattern.Value, syntax.Perl); err != nil {
			return refuse(n, "%v", err)
		}
		if err := c.cost(n); err != nil {
			return err
		}
	}
	return c.all(n.Left, n.Right)
}

// member checks a path such as tasks.a.outputs, and notes it.
func (c *checker) member(n *ast.MemberNode) error {
	var names []string
	var node ast.Node = n
	for {
		if chain, ok := node.(*ast.ChainNode); ok {
			node = chain.Node
			continue
		}
		m, ok := node.(*ast.MemberNode)
		if !ok {
			break
		}
		if name, ok := m.Property.(*ast.StringNode); ok {
			names = append(names, name.Value)
		} else {
			names = nil
			if err := c.check(m.Property); err != nil {
				return err
			}
		}
		c.nodes++
		node = m.Node
	}
	of, ok := node.(*ast.IdentifierNode)
	if !ok {
		return c.check(node)
	}
	if err := c.read(of); err != nil {
		return err
	}
	slices.Reverse(names)
	c.reads[len(c.reads)-1] = append(c.reads[len(c.reads)-1], names...)
	return nil
}

// read notes that the expression reads a variable.
func (c *checker) read(n *ast.IdentifierNode) error {
	if !slices.Contains(c.variables, n.Value) {
		advice := ""
		if strings.Contains(c.source, "-"+n.Value) {
			advice = `; a name with a minus is written tasks["a-b"]`
		}
		if n.Value == "null" || n.Value == "None" {
			advice = "; what does not exist is nil"
		}
		return refuse(n, "there is no %q here: use %s%s", clip.Line(n.Value, quoted), strings.Join(c.variables, ", "), advice)
	}
	c.reads = append(c.reads, []string{n.Value})
	return nil
}

func refuse(at ast.Node, format string, args ...any) error {
	return fmt.Errorf("at character %d: "+format, append([]any{at.Location().From + 1}, args...)...)
}

// plain returns an error of package expr in one line, in words of definitions.
func plain(err error) error {
	var located *file.Error
	text := err.Error()
	if errors.As(err, &located) {
		text = fmt.Sprintf("at character %d: %s", located.From+1, clip.Line(located.Message, quoted))
	}
	return errors.New(strings.ReplaceAll(clip.Line(text, quoted), "value.Large", "a number of more than 64 bits"))
}

// quoted is how many bytes of an expression an error quotes.
const quoted = 160
