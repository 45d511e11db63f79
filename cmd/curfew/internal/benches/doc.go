// Package benches has the commands that measure: curfew bench.
package benches
