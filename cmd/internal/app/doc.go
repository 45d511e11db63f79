// Package app contains the shared parts of all commands: arguments and flags, the connection to
// Redis and its namespace, output formats, exit codes, and error texts.
package app
