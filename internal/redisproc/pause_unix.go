//go:build unix

package redisproc

import "syscall"

// Pause stops the process (SIGSTOP). Its connections stay open, but get no replies.
func (s *Server) Pause() { s.process.os.Signal(syscall.SIGSTOP) }

// Resume continues the process after Pause.
func (s *Server) Resume() { s.process.os.Signal(syscall.SIGCONT) }
