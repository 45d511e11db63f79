//go:build race

package redistest

// race tells whether the race detector is on.
const race = true
