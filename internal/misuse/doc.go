// Package misuse has tests of programs that are set up wrongly: the server is the wrong one, the user
// lacks rights, an argument is nil.
package misuse
