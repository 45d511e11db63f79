// Package inspect reads a namespace, for operators and their tools. Hide removes texts of users from
// the results.
//
//	Explain        why a task is in its current state, and when that state ends at the latest
//	Read           everything that is stored for a task
//	List, Each     tasks that match a filter
//	Agents         live agents, and Deadlines and DueTasks what is due
//	Workers        live workers, and Kinds the kinds of tasks
//	OldestWaiting  the task of each queue that has been in line longest
//	Figures        counts of tasks by kind, since the namespace was created
//	Sweeps         when reapers last worked
//	Export         everything that a namespace stores
//	Audit          records and indexes that disagree
//
// Two functions change the namespace: Purge removes records of ended tasks, and Repair makes indexes
// agree with records.
package inspect
