// Package redistest starts Redis servers for tests: a server for one test, a server that a test
// binary shares, a cluster, a master with sentinels, or the embedded server. It also dumps and
// compares the keys of a server, so that a test can check what a call changed.
//
// A test that needs a real Redis never skips. Without redis-server it fails, and the error says
// how to install it.
package redistest
