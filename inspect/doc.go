// Package inspect reads a namespace. Only Repair changes something. Explain says why a task is in its current
// state and what it waits for. List returns the tasks that match a filter. Audit finds records and
// indexes that disagree, and Repair makes the indexes again. Export returns everything that a namespace holds. Figures counts how the tasks
// of each kind have ended since the namespace was created. Workers lists the live workers. OldestWaiting
// says how long tasks have been in line.
package inspect
