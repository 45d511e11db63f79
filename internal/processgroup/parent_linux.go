package processgroup

import "syscall"

// dieWithParent makes the kernel kill a command when the thread that started it ends, which it does when
// this process is killed. Processes that the command has started continue.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
