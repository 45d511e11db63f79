// Package fleet contains the commands about the parts of a namespace that serve tasks: queues,
// kinds, workers, agents and deadlines, and a live view of them.
package fleet
