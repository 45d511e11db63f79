//go:build !linux

package main

// adoptOrphans does nothing: only Linux gives a process the orphans below it.
func adoptOrphans() {}

// killOrphans does nothing.
func killOrphans() {}
