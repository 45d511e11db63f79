//go:build unix && !linux

package processgroup

import "syscall"

// dieWithParent sets nothing: only Linux can do this. The guard ends the commands.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
