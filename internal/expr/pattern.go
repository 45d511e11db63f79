package expr

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

// The time of a regular expression in Go grows with the length of the text times the steps of the
// pattern, so both are bounded. The bytes of the patterns are bounded because of the time to
// compile them.
const (
	maxSteps    = 250 // of all patterns of an expression
	maxPatterns = 512 // bytes, of all patterns of an expression
)

func (r *rules) checkPattern(n *ast.BinaryNode) error {
	pattern, ok := n.Right.(*ast.StringNode)
	if !ok {
		return r.refuse(n, `the right side of matches must be a pattern in quotes, as in %s matches "5[0-9][0-9]"`, r.words().text)
	}
	if wide(pattern.Value) {
		return r.refuse(n, `a pattern cannot contain \p or \x{…}, and can contain flags only if it is ASCII: write out its characters`)
	}
	tooLarge := r.refuse(n, "its patterns are too large: use less than %d characters and repetitions in all, or use contains", maxSteps)
	if r.patterns += len(pattern.Value); r.patterns > maxPatterns {
		return tooLarge
	}
	tree, err := syntax.Parse(pattern.Value, syntax.Perl)
	if err != nil {
		return r.refuse(n, "%s: write a Go regular expression", sentence(err.Error()))
	}
	if r.steps += steps(tree); r.steps > maxSteps {
		return tooLarge
	}
	r.nodes++
	return r.check(&n.Left)
}

// wide reports whether a pattern can have large classes of characters. They take memory, and with
// (?i) each character of the class takes time: (?i)[B-𞤀] takes 30 ms to compile.
func wide(pattern string) bool {
	for _, class := range []string{`\p`, `\P`, `\x{`} {
		if strings.Contains(pattern, class) {
			return true
		}
	}
	flags := strings.Count(pattern, "(?") > strings.Count(pattern, "(?:")
	return flags && strings.IndexFunc(pattern, func(c rune) bool { return c >= utf8.RuneSelf }) >= 0
}

// steps estimates how many instructions a pattern is compiled to, without compiling it.
func steps(pattern *syntax.Regexp) int {
	n := 1
	switch pattern.Op {
	case syntax.OpLiteral:
		n = len(pattern.Rune)
	case syntax.OpAlternate, syntax.OpCapture:
		n = 1 + len(pattern.Sub)
	}
	for _, sub := range pattern.Sub {
		n += steps(sub)
	}
	if pattern.Op == syntax.OpRepeat {
		n *= max(pattern.Max, pattern.Min+1) // Max is -1 for no limit
	}
	return min(n, maxSteps+1) // so that products do not overflow
}
