package lua

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis does not repeat. By default it repeats what got
// no answer, in silence; the script may have run by then, and would run again.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// Run runs a script on the partition whose root is key: KEYS[1] is key, ARGV are
// args. It returns the script's reply as go-redis gives it, nil for none.
//
// The script runs once or not at all. Errors:
//
//   - [Raised] is false: a lost connection, a timeout, an ended context. The script
//     may have run, may still run, or may never have arrived.
//   - *[ScriptError]: the script raised an error. What it wrote before remains.
//   - anything else: Redis refused to run the script.
//
// Run panics if the library has no such script: names are constants of our code, and
// an error would look like an outcome that nobody knows.
func (l *Library) Run(ctx context.Context, rdb redis.UniversalClient, name, key string, args ...any) (any, error) {
	s := l.scripts[name]
	if s == nil {
		panic(fmt.Sprintf("lua: there is no script %q", name))
	}
	reply, err := send(ctx, rdb, "evalsha", s.sha, key, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		// A new, restarted or flushed server. It has not run anything.
		reply, err = send(ctx, rdb, "eval", s.source, key, args)
	}
	if err != nil {
		return nil, l.explain(name, err)
	}
	return reply, nil
}

func send(ctx context.Context, rdb redis.UniversalClient, verb, script, key string, args []any) (any, error) {
	cmd := redis.NewCmd(ctx, append([]any{verb, script, 1, key}, args...)...)
	cmd.SetFirstKeyPos(3) // a cluster client routes by it
	if err := rdb.Process(ctx, once{cmd}); err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	return cmd.Val(), nil
}
