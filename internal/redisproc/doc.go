// Package redisproc runs redis-server processes on loopback: single ones, a cluster,
// a master with its sentinels. They die with the process that started them. It is
// for tests (see package redistest) and for measurements.
package redisproc
