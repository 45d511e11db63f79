//go:build !race

package redistest

// race is whether the race detector is on.
const race = false
