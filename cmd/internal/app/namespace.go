package app

import (
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/queue"
)

// OnNamespace returns the action of a command about a namespace: it checks the arguments, opens the namespace of the flags
// and calls do.
func OnNamespace(t Args, do func(c *cli.Context, q *queue.Queue, words []string) error) cli.ActionFunc {
	return OnNamespaceAs(queue.AccessAll, t, do)
}

// OnNamespaceAs is OnNamespace for a command that needs fewer rights.
func OnNamespaceAs(access queue.Access, t Args, do func(c *cli.Context, q *queue.Queue, words []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		words, err := Arguments(c, t)
		if err != nil {
			return err
		}
		q, stop, err := OpenAs(c, access)
		if err != nil {
			return Failure(c, err)
		}
		defer stop()
		return Failure(c, do(c, q, words))
	}
}
