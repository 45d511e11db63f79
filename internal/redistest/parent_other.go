//go:build !linux

package redistest

import "syscall"

// dieWithParent asks for nothing: only Linux knows how.
func dieWithParent() *syscall.SysProcAttr { return nil }
