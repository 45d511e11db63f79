package queue

import "github.com/curfew-dev/curfew/internal/names"

// MaxPartitions is the greatest number of partitions of a namespace.
const MaxPartitions = names.MaxPartitions

// PartitionOf returns the partition of a task's id. If id is not a valid id of a task, it returns
// [refusal.ErrInvalid].
func PartitionOf(id string) (int, error) { return names.PartitionOf(id) }
