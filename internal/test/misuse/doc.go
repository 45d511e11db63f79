// Package misuse has only tests, of programs with wrong settings: the server is the wrong one, the user
// lacks rights, or an argument is nil.
package misuse
