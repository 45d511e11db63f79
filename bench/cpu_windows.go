package bench

import "golang.org/x/sys/windows"

// ownCPU returns the CPU seconds that this process has used.
func ownCPU() (seconds float64, err error) {
	var began, ended, kernel, user windows.Filetime
	err = windows.GetProcessTimes(windows.CurrentProcess(), &began, &ended, &kernel, &user)
	for _, part := range []windows.Filetime{kernel, user} {
		seconds += float64(uint64(part.HighDateTime)<<32|uint64(part.LowDateTime)) / 1e7 // in 100 ns
	}
	return seconds, err
}
