package processgroup

import "syscall"

// dieWithParent makes the kernel kill a command when the thread that started it ends: when this
// process was killed. What the command has started is left to the guard.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
