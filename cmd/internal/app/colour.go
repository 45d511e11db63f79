package app

import (
	"io"
	"os"

	"github.com/urfave/cli/v2"
)

// Colour is a colour of a text on a terminal, "" for none. It only highlights a word: the word alone has all the information.
type Colour string

// Colours for good, doubtful and bad news.
const (
	Green  Colour = "32"
	Yellow Colour = "33"
	Red    Colour = "31"
)

// On returns a text in the colour.
func (c Colour) On(text string) string {
	if c == "" || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Coloured reports whether an output uses colours, because of --color, or because it is a terminal
// that supports them.
func Coloured(c *cli.Context, out io.Writer) bool {
	switch c.String("color") {
	case "always":
		return true
	case "never":
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
