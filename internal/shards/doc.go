// Package shards holds tests on several Redis servers: a cluster whose masters are
// killed, paused and replaced while everybody is at work, and a master that sentinels
// replace. It has no code of its own.
//
// Each test ends by taking account: every acknowledged task whose record survived has
// ended once, and an audit finds nothing. What the failover of an asynchronous replica
// lost is counted and told.
//
// CURFEW_LONG=1 kills more often.
package shards
