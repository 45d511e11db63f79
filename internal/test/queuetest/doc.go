// Package queuetest has helpers for tests of namespaces. They open a namespace on each kind of
// server, enqueue tasks that must be accepted, and fetch them as a worker does.
package queuetest
