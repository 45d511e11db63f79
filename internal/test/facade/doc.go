// Package facade has tests of the functions for programs in other languages: what a producer, a
// worker and a reaper do that have nothing but a Redis client, beside programs in Go.
package facade
