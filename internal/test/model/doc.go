// Package model plays random calls on a plain Go model of the rules and on Redis, and compares
// the whole state after each call.
package model
