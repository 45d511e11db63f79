// Package tasks has the commands about the tasks of a namespace.
package tasks
