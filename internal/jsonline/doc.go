// Package jsonline writes what Redis holds as JSON objects, a line each, in one order and
// without losing bytes.
package jsonline
