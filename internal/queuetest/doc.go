// Package queuetest has what tests of namespaces share: they open one on each kind of server,
// hand over tasks that must be accepted, and take them as a worker does.
package queuetest
