//go:build unix

package bench

import "syscall"

// ownCPU returns the CPU seconds that this process has used.
func ownCPU() (seconds float64, err error) {
	var own syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	for _, of := range []syscall.Timeval{own.Utime, own.Stime} {
		seconds += float64(of.Sec) + float64(of.Usec)/1e6
	}
	return seconds, err
}
