// Package seeds holds the tests that two of the documents behind Curfew ask for,
// with the values that those documents give: durable task timeouts (rows S0.1 to
// S0.61) and a per-task timeout by child context (S1.1 to S1.14, tested in package
// worker).
//
// docs/seeds.md says which test answers which row. A test of this package reads it,
// and fails if a row is missing, or names a test that is not there.
package seeds
