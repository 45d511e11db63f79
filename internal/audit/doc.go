// Package audit checks that the records and indexes of a partition agree.
package audit
