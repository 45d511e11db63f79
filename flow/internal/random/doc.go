// Package random has no code of its own: its tests run random definitions on real workers, some of which are killed, and compare
// each run with a plain evaluation of its definition.
package random
