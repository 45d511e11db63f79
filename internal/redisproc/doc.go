// Package redisproc runs redis-server processes on loopback: single servers, a cluster, or a master
// with its sentinels. On Linux and Windows they end with the process that started them, even if that is killed.
// The package is for tests (see package redistest) and for measurements.
package redisproc
