package redisproc

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that can be executed. No process is started while the file is open: it would have the open file
// too until it executes its own program, and until then Linux refuses to execute this file ("text file busy").
func WriteProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o755)
}
