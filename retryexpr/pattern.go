package retryexpr

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

// Go's regular expressions take a time that grows with the text times the steps of the
// pattern, so both are bounded, and the pattern's bytes for what it takes to read it.
const (
	maxSteps    = 250
	maxPatterns = 512 // bytes, of all
)

func (r *retryRules) checkPattern(n *ast.BinaryNode) error {
	pattern, ok := n.Right.(*ast.StringNode)
	if !ok {
		return refuseAt(r.source, n, `right of matches stands a pattern in quotes, as in tasks.%s.msg matches "5[0-9][0-9]"`, r.kind)
	}
	if wide(pattern.Value) {
		return refuseAt(r.source, n, `a pattern has no \p and no \x{…}, and flags only if all of it is ASCII: write out its characters`)
	}
	tooLarge := refuseAt(r.source, n, "its patterns are too large: write out less than %d characters and repetitions in all, or use contains", maxSteps)
	if r.patterns += len(pattern.Value); r.patterns > maxPatterns {
		return tooLarge
	}
	tree, err := syntax.Parse(pattern.Value, syntax.Perl)
	if err != nil {
		return refuseAt(r.source, n, "%s: write a regular expression of Go", sentence(err.Error()))
	}
	if r.steps += steps(tree); r.steps > maxSteps {
		return tooLarge
	}
	r.seen++
	return r.check(&n.Left)
}

// wide tells a pattern that could hold large classes of characters. Those take memory,
// and under (?i) a look at each character: (?i)[B-𞤀] takes 30 ms to read.
func wide(pattern string) bool {
	for _, class := range []string{`\p`, `\P`, `\x{`} {
		if strings.Contains(pattern, class) {
			return true
		}
	}
	flags := strings.Count(pattern, "(?") > strings.Count(pattern, "(?:")
	return flags && strings.IndexFunc(pattern, func(c rune) bool { return c >= utf8.RuneSelf }) >= 0
}

// steps is about how many instructions a pattern becomes, counted without making them.
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
	return min(n, maxSteps+1) // a product of many would run over
}
