package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/refusal"
)

// Question is what Confirm asks before a command does what cannot be undone.
type Question struct {
	Text    string   // is written to stderr
	Wants   []string // what must be typed, in each way that it may be written; the last one is for people
	What    string   // "the name of the queue"
	Nothing string   // what an answer other than that means: "nothing was changed"
}

// Confirm asks a question. It returns nil if the answer is what must be typed.
func Confirm(c *cli.Context, q Question) error {
	fmt.Fprint(c.App.ErrWriter, q.Text)
	typed, _ := ReadLine(c.Context, c.App.Reader)
	typed = strings.TrimSpace(typed)
	switch {
	case c.Context.Err() != nil:
		return Interrupted("%s", q.Nothing)
	case slices.Contains(q.Wants, typed) && typed != "":
		return nil
	case typed == "":
		fmt.Fprintln(c.App.ErrWriter) // the input has ended behind the question
		return errors.New(q.Nothing + ": type " + q.What + ", or give --yes")
	}
	return fmt.Errorf("%s: %s is not %s, %s", q.Nothing, PlainWord(refusal.Clip(typed)), q.What, PlainWord(q.Wants[len(q.Wants)-1]))
}
