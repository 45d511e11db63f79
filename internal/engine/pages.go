package engine

import (
	"context"
	"errors"
)

// Pages calls a script that replies in pages, and calls do with each reply. The argument of the script is
// the page, "0" for the first. next is the index of the following page in the reply, which is "0" in the
// last one. Pages returns the first error of a call or of do.
func (e *Engine) Pages(ctx context.Context, partition int, script string, next int, do func(reply []any) error) error {
	seen := map[string]bool{}
	for page := "0"; !seen[page]; {
		seen[page] = true
		reply, err := e.Call(ctx, partition, script, page)
		answers, err := List(reply, err, next+1)
		if err == nil {
			err = do(answers)
		}
		if err != nil {
			return err
		}
		if page = Text(answers[next]); page == "0" {
			return nil
		}
	}
	return errors.New("unexpected reply: the next page is one that was read before")
}
