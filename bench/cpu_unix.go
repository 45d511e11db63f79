//go:build unix

package bench

import "syscall"

// ownCPU returns the CPU seconds that this process has used.
func ownCPU() (seconds float64, err error) {
	var usage syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	for _, part := range []syscall.Timeval{usage.Utime, usage.Stime} {
		seconds += float64(part.Sec) + float64(part.Usec)/1e6
	}
	return seconds, err
}
