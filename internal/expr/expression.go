package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/vm"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/internal/expr/value"
)

// Expression is a compiled expression of a flow: a condition, or a value of an input.
type Expression struct {
	source  string
	program *vm.Program
	reads   [][]string
}

// Compile compiles an expression of a flow that can read the given variables.
func Compile(source string, variables []string) (*Expression, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, errors.New("the expression is empty")
	case len(source) > maxSource:
		return nil, fmt.Errorf("the expression has %d bytes, the limit is %d", len(source), maxSource)
	}
	l := &flowLanguage{source: source, variables: variables}
	program, err := compile(source, flowConfig(), l)
	if err != nil {
		return nil, err
	}
	return &Expression{source: source, program: program, reads: l.reads}, nil
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
func (e *Expression) value(variables map[string]any, room *int) (any, error) {
	v, err := run(e.program, variables)
	if err != nil {
		err = plain(err)
	} else {
		v, err = value.Canonical(v, room)
	}
	if err != nil {
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

// flowLanguage is the language of the expressions of flows.
type flowLanguage struct {
	source    string
	variables []string
	reads     [][]string
}

// flowFunctions are the functions that an expression of a flow can call.
var flowFunctions = []string{"abs", "ceil", "float", "floor", "int", "keys", "len", "lower", "max", "min", "round", "string", "trim", "upper", "values"}

// flowConfig returns the settings of the library. The names of functions that are not allowed can be variables.
func flowConfig() *conf.Config {
	config := conf.CreateNew()
	for _, f := range builtin.Builtins {
		if !slices.Contains(flowFunctions, f.Name) {
			config.Disabled[f.Name] = true
			delete(config.Builtins, f.Name)
		}
	}
	for name, own := range ownFunctions {
		config.Functions[name] = own
	}
	return config
}

func (l *flowLanguage) words() words {
	return words{
		functions: flowFunctions,
		costs:     "functions, sums and patterns",
		text:      "inputs.parameters.text",
		instead:   "compute a part of it in a node before",
		ranges:    "ranges are not allowed: compare with <= and >=",
		other:     "variables of its own, maps and predicates are not allowed",
	}
}

func (l *flowLanguage) call(ast.Node) {}

func (l *flowLanguage) types(ast.Node) error { return nil }

func (l *flowLanguage) refuse(node ast.Node, format string, args ...any) error {
	if node == nil {
		format = "the expression is refused: " + format
	}
	return fmt.Errorf("%s"+format, append([]any{at(node)}, args...)...)
}

func (l *flowLanguage) library(err error) error { return plain(errors.New(message(err))) }

// plain returns an error in words of definitions.
func plain(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "value.Large", "a number of more than 64 bits"))
}

func (l *flowLanguage) operator(r *rules, n *ast.BinaryNode) (done bool, err error) {
	switch n.Operator {
	case "+", "**", "matches":
		return false, r.cost(n)
	}
	return false, nil
}

func (l *flowLanguage) variable(r *rules, slot *ast.Node) error {
	switch n := (*slot).(type) {
	case *ast.IdentifierNode:
		return l.read(n)
	case *ast.ChainNode:
		return r.check(&n.Node)
	}
	return l.member(r, slot)
}

// member checks a path such as tasks.a.outputs, and notes it.
func (l *flowLanguage) member(r *rules, slot *ast.Node) error {
	var names []string
	for {
		if chain, ok := (*slot).(*ast.ChainNode); ok {
			slot = &chain.Node
			continue
		}
		m, ok := (*slot).(*ast.MemberNode)
		if !ok {
			break
		}
		if name, ok := m.Property.(*ast.StringNode); ok {
			names = append(names, name.Value)
		} else {
			names = nil
			if err := r.check(&m.Property); err != nil {
				return err
			}
		}
		if err := r.count(); err != nil {
			return err
		}
		slot = &m.Node
	}
	of, ok := (*slot).(*ast.IdentifierNode)
	if !ok {
		return r.check(slot)
	}
	if err := l.read(of); err != nil {
		return err
	}
	slices.Reverse(names)
	l.reads[len(l.reads)-1] = append(l.reads[len(l.reads)-1], names...)
	return nil
}

// read notes that the expression reads a variable.
func (l *flowLanguage) read(n *ast.IdentifierNode) error {
	if !slices.Contains(l.variables, n.Value) {
		advice := ""
		if strings.Contains(l.source, "-"+n.Value) {
			advice = `; a name with a minus is written tasks["a-b"]`
		}
		if n.Value == "null" || n.Value == "None" {
			advice = "; what does not exist is nil"
		}
		return l.refuse(n, "there is no %q here: use %s%s", clip.Line(n.Value, quoted), strings.Join(l.variables, ", "), advice)
	}
	l.reads = append(l.reads, []string{n.Value})
	return nil
}
