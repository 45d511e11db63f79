// Package requirements holds the tests that the documents behind Curfew require, with the values
// from those documents: durable task timeouts (rows S0.1 to S0.61), a
// per-task timeout by child context (S1.1 to S1.14, tested in package worker), retry
// and timeout of a workflow engine (S2.1 to S2.35), parallel tasks of agents (S3.1 to
// S3.51), and a strategy of three layers of timeouts (S4.1 to S4.48).
//
// seeds.md names the test of each row. A test of this package reads that page, and fails
// if a row is missing or names a test that does not exist.
package requirements
