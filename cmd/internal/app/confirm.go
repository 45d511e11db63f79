package app

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/refusal"
)

// Question is the question of Confirm before an action that cannot be undone.
type Question struct {
	Text    string   // is written to stderr
	Wants   []string // what must be typed, in each way that it may be written; the last one is for people
	What    string   // "the name of the queue"
	Nothing string   // what an answer other than that means: "nothing was changed"
}

// Confirm asks a question. It returns nil if the user types the expected answer.
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

// maxUnasked is how many things are changed without a question.
const maxUnasked = 1000

// ConfirmMany prints the number of objects to change. If there are more than 1,000 and --yes is not
// set, it asks the user to type this number. nothing describes the effect of any other answer.
func ConfirmMany(c *cli.Context, n int64, noun, verb, nothing string) error {
	text := fmt.Sprintf("%s to be %s", Plural(n, noun+" is", noun+"s are"), verb)
	if n <= maxUnasked || c.Bool("yes") {
		Note(c, "%s", text)
		return nil
	}
	return Confirm(c, Question{Text: text + "\nType their number to go on: ", Wants: []string{strconv.FormatInt(n, 10), Grouped(n)},
		What: "the number of " + noun + "s", Nothing: nothing})
}
