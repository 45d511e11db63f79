// Package lines has the objects that the commands and the HTTP API write as JSON, each with the function that makes it.
package lines
