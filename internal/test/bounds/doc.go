// Package bounds tests that no command keeps Redis busy for long, however large a namespace is: the calls of
// operators read in parts, and a sweep does due work in parts. The package has no other code.
//
// With CURFEW_LONG=1 the tests use 2,000,000 tasks, and 300,000 tasks that are due in the same millisecond.
package bounds
