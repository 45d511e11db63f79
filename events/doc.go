// Package events reads the events of a namespace, one numbered event for each transition. A program
// reads from a cursor, which it can store. docs/reference/events.md lists the kinds.
package events
