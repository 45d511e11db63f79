//go:build !linux

package redisproc

import "syscall"

// dieWithParent asks for nothing: only Linux knows how.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
