package redisproc

import "syscall"

// dieWithParent makes the kernel kill the child when the thread that started it ends. A killed
// test binary cannot stop its servers itself.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
