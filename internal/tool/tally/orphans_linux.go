package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// own holds the processes that this process has started and waits for itself.
var own struct {
	mu   sync.Mutex
	pids map[int]bool
}

// starting starts a process that this process waits for itself: reapOrphans leaves it alone.
func starting(start func() (pid int, err error)) error {
	own.mu.Lock()
	defer own.mu.Unlock()
	pid, err := start()
	if err == nil {
		own.pids[pid] = true
	}
	return err
}

// adoptOrphans makes this process the parent of processes whose parents have ended, so that killOrphans finds them. As the
// first process of a system would, it takes the exit codes of those that end, because a test may await their ends.
func adoptOrphans() {
	own.pids = map[int]bool{}
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			reapOrphans()
		}
	}()
}

// reapOrphans takes the exit codes of the adopted processes that have ended.
func reapOrphans() {
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, pid := range children() {
		if !own.pids[pid] {
			syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// killOrphans kills the children of this process. The go tests have ended, so these are processes that tests have started
// and not ended. A process that is about to end by itself gets some time, and those that do not are named.
func killOrphans() {
	named := map[int]bool{}
	for left := 50; ; left-- {
		pids := children()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			if left <= 0 && !named[pid] {
				named[pid] = true
				command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				fmt.Fprintf(os.Stderr, "the tests left process %d: %s\n", pid, strings.ReplaceAll(string(command), "\x00", " "))
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		reapOrphans()
		time.Sleep(20 * time.Millisecond) // nothing notifies this process of the end of any child
	}
}

// children returns the ids of the child processes of this process, ended ones included.
func children() (pids []int) {
	for _, p := range processes() {
		if p.parent == os.Getpid() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
