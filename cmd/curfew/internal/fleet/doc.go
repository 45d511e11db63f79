// Package fleet has the commands about what serves the tasks of a namespace, and when: queues, kinds, workers, agents,
// deadlines, and a live view of them.
package fleet
