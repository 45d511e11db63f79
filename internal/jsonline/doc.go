// Package jsonline writes data of Redis as JSON objects, one in a line. The order of members is
// fixed, and no byte is lost.
package jsonline
