// Package audit checks that the records and indexes of a partition agree. Its rules are its own: the repair has them again in Lua
// (lua/repair), beside the code that writes the indexes, and a test compares the two (docs/decisions/0056-audit-and-repair.md).
package audit
