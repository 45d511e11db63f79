//go:build !linux

package outside

import "syscall"

// dieWithParent sets nothing: only Linux can do this. The guard ends the commands.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
