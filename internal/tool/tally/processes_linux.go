package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is a process of this machine.
type process struct {
	pid, parent, group int
	name, state        string
}

// processes returns all processes, those that have ended and whose exit code nobody has taken included.
func processes() (list []process) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent group ...; the name may have spaces and parentheses.
		end := strings.LastIndex(string(text), ") ")
		if end < 0 {
			continue
		}
		id, name, _ := strings.Cut(string(text[:end]), " (")
		fields := strings.Fields(string(text[end+2:]))
		p := process{name: name, state: fields[0]}
		p.pid, _ = strconv.Atoi(id)
		p.parent, _ = strconv.Atoi(fields[1])
		p.group, _ = strconv.Atoi(fields[2])
		list = append(list, p)
	}
	return list
}

// program returns the path of the program, "" if the process has ended.
func (p process) program() string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid))
	return path
}
