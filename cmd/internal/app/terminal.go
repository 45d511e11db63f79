package app

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether an output is a terminal.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Redraws reports whether an output is a terminal on which text can be replaced by newer text.
func Redraws(out io.Writer) bool { return IsTerminal(out) && os.Getenv("TERM") != "dumb" }
