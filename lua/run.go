package lua

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis does not repeat. By default it repeats what got
// no answer, in silence; the call may have run by then, and would run again.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// loadAgainAfter is how long calls are sent as scripts once a server has refused to
// load the library (it may be full, or the user may lack the right).
const loadAgainAfter = time.Second

// Run runs a call on the partition whose root is key, with args. It returns the call's
// reply as go-redis gives it, nil for none.
//
// The call runs once or not at all. Errors:
//
//   - [Raised] is false: a lost connection, a timeout, an ended context. The call
//     may have run, may still run, or may never have arrived.
//   - *[ScriptError]: the call raised an error.
//   - anything else: Redis refused to run the call.
//
// Run panics if the library has no such call: names are constants of our code, and
// an error would look like an outcome that nobody knows.
func (l *Library) Run(ctx context.Context, rdb redis.UniversalClient, name, key string, args ...any) (any, error) {
	c := l.calls[name]
	if c == nil {
		panic(fmt.Sprintf("lua: there is no call %q", name))
	}
	if l.functions && time.Now().UnixNano() > l.refused.Load() {
		reply, err := send(ctx, rdb, "fcall", c.function, key, args)
		if unknownFunction(err) {
			// A new, restarted or flushed server. It has not run anything.
			err = l.load(ctx, rdb, key)
			moved := redis.HasErrorPrefix(err, "READONLY")
			if err == nil {
				reply, err = send(ctx, rdb, "fcall", c.function, key, args)
				moved = unknownFunction(err)
			} else if Raised(err) && !moved {
				l.refused.Store(time.Now().Add(loadAgainAfter).UnixNano())
				return l.runScript(ctx, rdb, name, key, args)
			}
			if moved {
				// The key has another master now, and a cluster client that does not know
				// it yet told the old one. It follows the key with a script.
				return l.runScript(ctx, rdb, name, key, args)
			}
		}
		return reply, l.explain(name, &l.whole, err)
	}
	return l.runScript(ctx, rdb, name, key, args)
}

func (l *Library) runScript(ctx context.Context, rdb redis.UniversalClient, name, key string, args []any) (any, error) {
	c := l.calls[name]
	reply, err := send(ctx, rdb, "evalsha", c.sha, key, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = send(ctx, rdb, "eval", c.source, key, args)
	}
	return reply, l.explain(name, &c.script, err)
}

// load has the server that holds a key load the library. Another client may have been
// faster.
func (l *Library) load(ctx context.Context, rdb redis.UniversalClient, key string) error {
	var node redis.Cmdable = rdb
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return err
		}
		node = master
	}
	err := node.FunctionLoad(ctx, l.whole.String()).Err()
	if err != nil && strings.Contains(err.Error(), "already exists") {
		return nil
	}
	return err
}

// IsVerb tells whether commands of this name send calls.
func IsVerb(name string) bool {
	return name == "fcall" || name == "evalsha" || name == "eval"
}

func unknownFunction(err error) bool {
	return Raised(err) && strings.Contains(err.Error(), "Function not found")
}

func send(ctx context.Context, rdb redis.UniversalClient, verb, script, key string, args []any) (any, error) {
	words := make([]any, 0, 4+len(args))
	cmd := redis.NewCmd(ctx, append(append(words, verb, script, 1, key), args...)...)
	cmd.SetFirstKeyPos(3) // a cluster client routes by it
	if err := rdb.Process(ctx, once{cmd}); err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	return cmd.Val(), nil
}
