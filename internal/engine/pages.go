package engine

import (
	"context"
	"errors"
)

// Pages calls a script that tells of many things in pages, and hands each reply to a function.
// The argument of the script is the page, "0" at first; next is the place in the reply of the
// page that follows, "0" after the last one.
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
	return errors.New("the server goes on with a page that it told of before")
}
