// Package app has what all commands share: how arguments and flags are read, how a command connects to Redis and opens
// a namespace, the forms of its output, its exit codes, and what an error says.
package app
