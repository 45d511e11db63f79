//go:build !unix

package redisproc

// Pause panics: only Unix can stop a process and continue it.
func (s *Server) Pause() { panic("redisproc: this system cannot pause a process") }

// Resume panics.
func (s *Server) Resume() { panic("redisproc: this system cannot pause a process") }
