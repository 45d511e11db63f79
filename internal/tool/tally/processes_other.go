//go:build !linux

package main

import "context"

// adoptOrphans does nothing: only Linux gives a process the orphans below it.
func adoptOrphans() {}

// killOrphans does nothing.
func killOrphans() {}

// starting calls start.
func starting(start func() (pid int, err error)) error {
	_, err := start()
	return err
}

// stall does nothing: the processes of other systems are not listed.
func stall(context.Context, int) {}
