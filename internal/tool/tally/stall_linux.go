package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"
)

// stall stops the test binaries of a process group and their Redis servers at random, each for up to 1.5 s, until ctx ends. That is
// what a busy machine does, more often and for longer: a test that fails has a limit of time that a machine can miss.
func stall(ctx context.Context, group int) {
	stopped := map[int]time.Time{} // when they continue
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for over := false; !over || len(stopped) > 0; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			over = true
		}
		for pid, until := range stopped {
			if over || time.Now().After(until) {
				syscall.Kill(pid, syscall.SIGCONT)
				delete(stopped, pid)
			}
		}
		if over {
			continue
		}
		for _, pid := range stoppable(group) {
			if _, is := stopped[pid]; !is && rand.IntN(12) == 0 && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stopped[pid] = time.Now().Add(200*time.Millisecond + rand.N(1300*time.Millisecond))
			}
		}
	}
}

// stoppable returns the processes that stall may stop: the test binaries of a process group, and their redis-servers.
func stoppable(group int) (pids []int) {
	all := processes()
	binaries := map[int]bool{}
	for _, p := range all {
		if p.group == group && strings.HasSuffix(p.program(), ".test") {
			binaries[p.pid] = true
		}
	}
	for _, p := range all {
		if (binaries[p.pid] || binaries[p.parent] && p.name == "redis-server") && p.state != "T" {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
