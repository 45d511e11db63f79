package retryexpr

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/refusal"
)

// Limits of an expression. With the rules of rules.go they bound every evaluation to some ms.
const (
	maxExpression = 4 << 10 // bytes of source
	maxNodes      = 300     // nodes of the tree
)

// kinds matches the valid names of kinds, as package queue defines them.
var kinds = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)

// readRetry compiles an expression. It does so in steps instead of one call of the library, so
// that the tree that it checks is the tree that runs.
func readRetry(kind, source string) (e *retryExpression, err error) {
	if !kinds.MatchString(kind) {
		return nil, refusal.Invalid("kind", "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit", refusal.Clip(kind))
	}
	defer func() {
		if r := recover(); r != nil {
			e, err = nil, refuseRetry(source, "it cannot be compiled (%s): write a simpler expression", sentence(fmt.Sprint(r)))
		}
	}()
	if err := checkSource(source); err != nil {
		return nil, err
	}
	text, err := flatNames(kind, source)
	if err != nil {
		return nil, err
	}
	config := conf.New(exprScope{})
	config.MaxNodes = maxNodes
	// The optimizer copies parts of a tree, and copies of copies can make it huge.
	config.Optimize = false
	tree, err := parser.ParseWithConfig(text, config)
	if err != nil {
		return nil, refuseLibrary(kind, source, err)
	}
	r := retryRules{kind: kind, source: source}
	if err := r.check(&tree.Node); err != nil {
		return nil, err
	}
	if _, err := checker.Check(tree, config); err != nil {
		return nil, refuseLibrary(kind, source, err)
	}
	if err := r.checkTypes(tree.Node); err != nil {
		return nil, err
	}
	program, err := compiler.Compile(tree, config)
	if err != nil {
		return nil, refuseLibrary(kind, source, err)
	}
	return &retryExpression{kind: kind, program: program, parameters: r.parameters, everything: r.everything}, nil
}

func checkSource(source string) error {
	switch {
	case strings.TrimSpace(source) == "":
		return refuseRetry(source, "it is empty: leave it out, or write true or false")
	case len(source) > maxExpression:
		return refuseRetry(source, "it has %d bytes, the limit is %d: decide in the handler, by worker.Fail and worker.Discard", len(source), maxExpression)
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

// refuseRetry returns the error for an expression: why it is refused, and what to write.
func refuseRetry(source, format string, args ...any) error {
	return refusal.Invalid("retry expression", "%q is refused: "+format, append([]any{refusal.Clip(source)}, args...)...)
}

// refuseAt is refuseRetry with the position of a node.
func refuseAt(source string, node ast.Node, format string, args ...any) error {
	at := fmt.Sprintf("at character %d: ", node.Location().From+1)
	return refuseRetry(source, "%s"+format, append([]any{at}, args...)...)
}

// refuseLibrary returns the error for an expression that package expr refuses, in one line.
func refuseLibrary(kind, source string, err error) error {
	flat := "tasks." + kind
	text := strings.ReplaceAll(exprMessage(err), strings.Repeat("$", len(flat)), flat)
	return refuseRetry(source, "%s: write a condition such as %s.code == 75", text, flat)
}

// exprMessage returns the message of an error of package expr, with the position in numbers. The
// message of expr draws it on several lines.
func exprMessage(err error) string {
	var located *file.Error
	if errors.As(err, &located) {
		return fmt.Sprintf("at character %d: %s", located.From+1, sentence(located.Message))
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return sentence(text)
}

// sentence makes a text that can contain foreign input one line of bounded length.
func sentence(text string) string {
	text = clip.Text(text, 160)
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "?"))
}

// checkTypes checks the rules that need the types of the nodes.
func (r *retryRules) checkTypes(root ast.Node) error {
	for _, sum := range r.sums {
		if !yieldsNumber(sum.Left) && !yieldsNumber(sum.Right) {
			return refuseAt(r.source, sum, "+ adds numbers only: write int(…) around a number, and compare texts with contains, startsWith or endsWith")
		}
	}
	for _, call := range r.strings {
		if kind := call.Arguments[0].Type().Kind(); kind != reflect.String && kind != reflect.Bool && !yieldsNumber(call.Arguments[0]) {
			return refuseAt(r.source, call, "string takes a number, a bool or a text, but the type of its argument is not known: compare the value without string")
		}
	}
	switch root.Type().Kind() {
	case reflect.Bool, reflect.String, reflect.Interface:
		return nil // a string can be "true", and the type of a parameter is known at run time only
	}
	return refuseRetry(r.source, "its result is of type %v, but must be true or false: write a comparison such as tasks.%s.code == 75", root.Type(), r.kind)
}

func yieldsNumber(node ast.Node) bool {
	switch node.Type().Kind() {
	case reflect.Int, reflect.Int64, reflect.Float64:
		return true
	}
	return false
}
