// Package jsonx writes Curfew's JSON, and describes errors of encoding/json without the names of Go types. The order of the members
// that it writes is fixed, and no byte is lost.
package jsonx
