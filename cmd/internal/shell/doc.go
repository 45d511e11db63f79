// Package shell has the commands about the command itself: its help, its version, and completion in shells.
package shell
