// Package inspect reads a namespace and changes nothing. Explain says why a task is where it is
// and what it waits for. Audit says where records and indexes disagree. Export tells all that a
// namespace holds. Figures tells how the tasks of each kind ended, ever.
package inspect
