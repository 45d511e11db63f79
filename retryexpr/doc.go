// Package retryexpr evaluates the expressions that decide whether a failed attempt is repeated.
// They are strict: what could take long, or mean something else than it seems to, is refused.
package retryexpr
