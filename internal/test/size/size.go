// Package size tells tests how much to do. `make test` plays each promise's sharpest attack. `make long` sets
// CURFEW_LONG=1 and plays all variants and repetitions of it. -short plays less than `make test`.
package size

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Long reports whether tests may take minutes, because CURFEW_LONG is set.
func Long() bool { return os.Getenv("CURFEW_LONG") != "" }

// Times returns short with -short, long with CURFEW_LONG, and usual otherwise.
func Times(short, usual, long int) int {
	switch {
	case Long():
		return long
	case testing.Short():
		return short
	}
	return usual
}

// Seed returns the seed of random choices: CURFEW_SEED, which `make test` sets and prints, or another one each time. A test
// that uses it prints it.
func Seed() uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("CURFEW_SEED"), 10, 64); err == nil {
		return seed
	}
	return rand.Uint64()
}

// Drawn reports whether to play a variant of a test that usually finds what another variant finds, such as the same test on
// another server. It draws one in n by the name, so that each usual run plays the same ones. With CURFEW_LONG all are played;
// `make drawn` plays some of those for each change.
func Drawn(name string, n uint32) bool {
	if Long() {
		return true
	}
	hash := fnv.New32a()
	io.WriteString(hash, name)
	return hash.Sum32()%n == 0
}
