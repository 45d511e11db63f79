// Package redistest gives tests a Redis: a real one of their own, a real one that a
// test binary shares, a cluster, a master with sentinels, or the embedded one. And it tells what a key space holds, so
// that a test can say what a call changed.
//
// A test that needs a real Redis never skips: without one it fails, with what to do.
package redistest
