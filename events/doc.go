// Package events reads what happened in a namespace: one event for each transition, numbered,
// from a cursor on that a program may keep. docs/events.md lists the kinds.
package events
