// Package shards has only tests, on several Redis servers: a cluster whose masters are killed,
// paused and replaced under load, and a master that sentinels replace.
//
// At its end each test checks that every acknowledged task whose record survived has ended once,
// and that an audit finds nothing. It logs how many tasks the failovers lost, because replication
// is asynchronous.
//
// CURFEW_LONG=1 kills more often.
package shards
