// Package inspect reads a namespace. Two functions change it: Purge removes records of ended tasks, and Repair makes indexes
// again. Explain says why a task is in its current state and what it waits for. List returns the tasks that match a filter. Audit
// finds records and indexes that disagree. Export returns everything that a namespace holds. Figures counts how many tasks of each
// kind were created, and how they have ended, since the namespace was created. Sweeps says when reapers last worked. Workers lists the live workers, and Kinds the kinds. OldestWaiting says how
// long tasks have been in line. Hide removes texts of users from what these return.
package inspect
