package processgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// onlyZombies reports whether all processes of a group have ended, and are only still listed because
// nobody has taken their exit codes. In a container the first process is often slow to do that.
func onlyZombies(group int) bool {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(folders) == 0 {
		return false
	}
	for _, folder := range folders {
		if state, of := processState(folder); of == group && state != "Z" && state != "X" {
			return false
		}
	}
	return true
}

// Marked returns the groups of the processes that have a variable in their environment.
func Marked(variable string) (groups []int) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		text, _ := os.ReadFile(folder + "/environ")
		if bytes.Contains(append([]byte{0}, text...), []byte("\x00"+variable+"\x00")) {
			_, group := processState(folder)
			groups = append(groups, group)
		}
	}
	return groups
}

// processState reads the state and the group of a process; "" and 0 if it has ended.
func processState(folder string) (state string, group int) {
	text, _ := os.ReadFile(folder + "/stat")
	// After the name in parentheses: state, parent, group.
	words := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(words) < 3 {
		return "", 0
	}
	group, _ = strconv.Atoi(words[2])
	return words[0], group
}
