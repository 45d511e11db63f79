package queue_test

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// around is called around each command of a client whose name begins so.
type around struct {
	name   string
	before func()
	after  func(error)
}

func (around) DialHook(next redis.DialHook) redis.DialHook { return next }
func (around) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a around) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), a.name) {
			return next(ctx, cmd)
		}
		if a.before != nil {
			a.before()
		}
		err := next(ctx, cmd)
		if a.after != nil {
			a.after(err)
		}
		return err
	}
}
