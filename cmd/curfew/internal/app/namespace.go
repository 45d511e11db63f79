package app

import (
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/queue"
)

// OnNamespace returns the action of a command about a namespace: it checks the arguments, opens the namespace of the flags
// and calls do.
func OnNamespace(t Args, do func(c *cli.Context, q *queue.Queue, words []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		words, err := Arguments(c, t)
		if err != nil {
			return err
		}
		q, stop, err := OpenNamespace(c)
		if err != nil {
			return Failure(c, err)
		}
		defer stop()
		return Failure(c, do(c, q, words))
	}
}
