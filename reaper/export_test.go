package reaper

import "time"

// BePatient bounds each sweep by a time.
func BePatient(d time.Duration) { patience = d }

// SharedUsers returns how many calls of RunShared share the namespace's reaper.
func SharedUsers(of Namespace) int {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if s := shared[of.Engine()]; s != nil {
		return s.users
	}
	return 0
}
