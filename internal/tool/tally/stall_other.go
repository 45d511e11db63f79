//go:build !unix

package main

import "context"

// stall does nothing: only Unix stops processes.
func stall(context.Context, int) {}
