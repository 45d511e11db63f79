package app

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether an output is a terminal.
func IsTerminal(out io.Writer) bool {
	f, is := out.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}
