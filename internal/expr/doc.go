// Package expr compiles and evaluates expressions in the language of github.com/expr-lang/expr: those that decide whether a failed
// attempt is retried, and the conditions and values of flows. Any producer can write one, and every worker evaluates it, so both
// have the same bounds: what could take long, or whose meaning could surprise, is refused (docs/decisions/0013-retry-expression.md).
package expr
