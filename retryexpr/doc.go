// Package retryexpr evaluates the expressions that decide whether a failed attempt is retried.
// An expression that could take long, or whose meaning could surprise, is refused.
package retryexpr
