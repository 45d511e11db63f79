//go:build unix

package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stall stops the test binaries of a process group at random, each for up to 1.5 s, until ctx ends. That is what a busy machine
// does, more often and for longer: a test that fails has a limit of time that a machine can miss.
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
		for _, pid := range testBinaries(group) {
			if _, is := stopped[pid]; !is && rand.IntN(12) == 0 && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stopped[pid] = time.Now().Add(200*time.Millisecond + rand.N(1300*time.Millisecond))
			}
		}
	}
}

// testBinaries returns the test binaries of a process group that run. It finds some on Linux only.
func testBinaries(group int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		// pid (name) state ppid pgrp ...
		fields := strings.Fields(rest)
		program, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if len(fields) > 2 && fields[0] != "T" && fields[2] == strconv.Itoa(group) && strings.HasSuffix(program, ".test") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}
