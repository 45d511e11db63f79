package queue

import "github.com/curfew-dev/curfew/internal/names"

// MaxPartitions is the greatest number of partitions of a namespace.
const MaxPartitions = names.MaxPartitions

// PartitionOf returns the partition of a task's id. If id is not a valid id of a task, it returns
// [refusal.ErrInvalid].
func PartitionOf(id string) (int, error) { return names.PartitionOf(id) }

// IDOf returns the id of the task with a name ([Task].Name), whether or not there is such a task.
// All programs compute the same id, because it depends only on the name and the number of
// partitions. The id is the partition, a dash, n- and the name if the name has only letters, digits,
// - and _. Otherwise it has e- in place of n-, and each byte of any other character is _ and two
// hexadecimal digits. For a name that no task can have, "" or one of more than 128 bytes, IDOf
// returns "", which every call refuses.
func (q *Queue) IDOf(name string) string {
	id, _ := names.Named(name, q.Partitions())
	return id
}

// NameOf returns the name of a task from its id, or "" if the task has none.
func NameOf(id string) string { return names.NameOf(id) }

// NewCall returns a new id for a call. A second call with the same id is a repeat, and has no
// further effect.
func NewCall() string { return names.NewCall() }
