package queue

import "github.com/curfew-dev/curfew/internal/names"

// MaxPartitions is the greatest number of partitions of a namespace.
const MaxPartitions = names.MaxPartitions

// PartitionOf returns the partition of a task's id. If id is not a valid id of a task, it returns
// [refusal.ErrInvalid].
func PartitionOf(id string) (int, error) { return names.PartitionOf(id) }

// IDOf returns the id of the task with a name ([Task].Name), whether or not there is such a task. All programs
// compute the same id, since it follows from the name and the number of partitions. It begins with the partition and
// n- before a name of letters, digits, - and _, and e- before any other name, in which each other character is
// _ and two hexadecimal digits a byte. For a name that no task can have, "" or one of more than 128 bytes,
// IDOf returns "", which every call refuses.
func (q *Queue) IDOf(name string) string {
	id, _ := names.Named(name, q.Partitions())
	return id
}

// NameOf returns the name of a task from its id, or "" if the task has none.
func NameOf(id string) string { return names.NameOf(id) }
