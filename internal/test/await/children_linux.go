package await

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Children waits until a process has at least n children, and returns their ids.
func Children(tb testing.TB, pid, n int) []int {
	tb.Helper()
	var children []int
	Until(tb, fmt.Sprintf("process %d has %d children", pid, n), func() bool {
		children = childrenOf(pid)
		return len(children) >= n
	})
	return children
}

// childrenOf returns the processes whose parent is pid. The parent is the second word after
// the name in /proc/<pid>/stat.
func childrenOf(pid int) (children []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(text), ") ")
		if words := strings.Fields(rest); len(words) > 1 && words[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			children = append(children, child)
		}
	}
	return children
}
