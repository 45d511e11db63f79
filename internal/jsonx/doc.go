// Package jsonx reads and writes Curfew's JSON. A fault in what users have written has its position, and no error has the name of a Go
// type. The order of the members that it writes is fixed, and no byte is lost.
package jsonx
