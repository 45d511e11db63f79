package queue

import "github.com/curfew-dev/curfew/internal/names"

// MaxPartitions is how many partitions a namespace may have.
const MaxPartitions = names.MaxPartitions

// PartitionOf reads the partition off a task's id. The error says what is wrong
// with an id that is not one of ours.
func PartitionOf(id string) (int, error) { return names.PartitionOf(id) }
