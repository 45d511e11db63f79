// Package hostile has only tests: calls with invalid arguments, and calls of Redis users that
// lack a right.
package hostile
