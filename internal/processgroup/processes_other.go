//go:build unix && !linux

package processgroup

// onlyZombies reports false: only Linux has a list of processes that is read so easily. A group of
// zombies then counts as alive until its grace is over.
func onlyZombies(int) bool { return false }

// Marked returns nothing: a command that is being started when the worker is killed continues.
func Marked(string) []int { return nil }
