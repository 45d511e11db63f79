// Package audit holds what a partition contains against what must be true of it.
package audit
