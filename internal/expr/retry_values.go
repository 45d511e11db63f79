package expr

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/curfew-dev/curfew/refusal"
)

// exprPart describes the meaning of a part of an expression.
type exprPart int

const (
	aValue exprPart = iota
	allTasks
	theTask
	allOutputs
	allParameters
)

// variable checks a variable with its members. It must be complete: tasks.my-task.code, not tasks.
func (l *retryLanguage) variable(r *rules, slot *ast.Node) error {
	is, err := l.resolve(r, slot)
	switch {
	case err != nil:
		return err
	case is == allParameters:
		l.everything = true
	case is != aValue:
		return l.refuse(*slot, "a member is missing: write tasks.%s.phase, .code, .msg or .outputs.parameters.<name>", l.kind)
	}
	return nil
}

// resolve follows a name and its members, and replaces the name of the task by taskVariable.
func (l *retryLanguage) resolve(r *rules, slot *ast.Node) (exprPart, error) {
	switch n := (*slot).(type) {
	case *ast.IdentifierNode:
		switch {
		case n.Value == "tasks":
			return allTasks, nil
		case n.Value[0] == '$': // the name that flatNames wrote, or taskVariable
			n.Value = taskVariable
			return theTask, nil
		}
		return 0, l.refuse(n, "%q is not known: write tasks.%s.phase, .code, .msg or .outputs.parameters.<name>, and texts in quotes", refusal.Clip(n.Value), l.kind)
	case *ast.ChainNode:
		return l.resolve(r, &n.Node)
	case *ast.MemberNode:
		if err := r.count(); err != nil {
			return 0, err
		}
		of, err := l.resolve(r, &n.Node)
		if err != nil {
			return 0, err
		}
		return l.member(r, slot, n, of)
	}
	return aValue, r.check(slot)
}

func (l *retryLanguage) member(r *rules, slot *ast.Node, n *ast.MemberNode, of exprPart) (exprPart, error) {
	name := textOf(n.Property)
	switch {
	case of == allTasks && name == l.kind:
		task := &ast.IdentifierNode{Value: taskVariable}
		task.SetLocation(n.Location())
		*slot = task
		return theTask, nil
	case of == allTasks:
		return 0, l.refuse(n, "tasks.%s is another task, but an expression can read only its own: write tasks.%s", refusal.Clip(name), l.kind)
	case of == theTask && (name == "phase" || name == "code" || name == "msg"):
		return aValue, nil
	case of == theTask && name == "outputs":
		return allOutputs, nil
	case of == theTask || of == allOutputs && name != "parameters":
		return 0, l.refuse(n, "a task has no %q: write tasks.%s.phase, .code, .msg or .outputs.parameters.<name>", refusal.Clip(name), l.kind)
	case of == allOutputs:
		return allParameters, nil
	case of == allParameters && name != "":
		l.parameters = append(l.parameters, name)
	case of == allParameters:
		l.everything = true
	}
	return aValue, r.check(&n.Property)
}

func textOf(node ast.Node) string {
	if text, ok := node.(*ast.StringNode); ok {
		return text.Value
	}
	return ""
}

// Limits of what an expression can read of an attempt, since its cost grows with it.
const (
	maxVisible = 4 << 10 // bytes of the message, and bytes of the parameters that it reads
	maxValues  = 1000    // values in these parameters
	maxNesting = 10      // levels of lists and maps
)

// weigh returns an error if the parameters that the expression reads are too large, or of a type
// that encoding/json does not decode to: such a value can have methods, or be infinite.
func (e *retryExpression) weigh(parameters map[string]any) error {
	s := scale{bytes: maxVisible, values: maxValues}
	if e.everything {
		return e.refuseParameters(s.weigh(parameters, 0))
	}
	for i, name := range e.parameters {
		if slices.Contains(e.parameters[:i], name) {
			continue
		}
		if why := s.weigh(parameters[name], 1); why != "" {
			return e.refuseParameters(why)
		}
	}
	return nil
}

func (e *retryExpression) refuseParameters(why string) error {
	if why == "" {
		return nil
	}
	return e.failed("the parameters that it reads " + why)
}

// scale holds what is left of the limits.
type scale struct{ bytes, values int }

func (s *scale) weigh(value any, depth int) string {
	s.values--
	switch v := value.(type) {
	case nil, bool, int, int64, float64:
	case string:
		s.bytes -= len(v)
	case []any:
		for i := 0; i < len(v) && s.holds(depth); i++ {
			if why := s.weigh(v[i], depth+1); why != "" {
				return why
			}
		}
	case map[string]any:
		for name, item := range v {
			s.bytes -= len(name)
			if !s.holds(depth) {
				break
			}
			if why := s.weigh(item, depth+1); why != "" {
				return why
			}
		}
	default:
		return fmt.Sprintf("contain a %T: use the types to which encoding/json decodes an object", v)
	}
	if !s.holds(depth) {
		return fmt.Sprintf("have more than %d bytes, %d values or %d levels: make them smaller, or read fewer", maxVisible, maxValues, maxNesting)
	}
	return ""
}

func (s *scale) holds(depth int) bool { return s.bytes >= 0 && s.values >= 0 && depth <= maxNesting }
