// Package programs has the commands that run until they are interrupted: workers, reapers and the demo.
package programs
