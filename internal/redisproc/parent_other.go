//go:build !linux

package redisproc

import "syscall"

// dieWithParent sets nothing: only Linux can do this.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
