package redisproc

import "syscall"

// dieWithParent has the kernel kill the child when the thread that started it ends:
// a test binary that is killed cannot stop its servers itself.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
