package lua

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis does not repeat. By default go-redis repeats a command
// that got no reply. The call may have run by then, and would run again.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

const (
	// loadAgainAfter is how long calls are sent as scripts after a server has refused to
	// load the library: it can be full.
	loadAgainAfter = time.Second
	// rightsAgainAfter is how long calls are sent as scripts after the user was refused
	// FCALL, or FUNCTION LOAD on a server without the library.
	rightsAgainAfter = time.Minute
)

// Run runs a call on the partition whose root is key, with args. It returns the reply of
// the call as go-redis decodes it; a null reply is nil.
//
// The call runs at most once. Errors are
//
//   - an error for which [Raised] returns false: a lost connection, a timeout, an ended
//     context. The call may have run, may still run, or may never have arrived.
//   - *[ScriptError]: the call raised an error.
//   - any other error: Redis refused to run the call.
//
// Run panics if the library has no such call: names are constants of the program, and an
// error would look like an unknown outcome.
//
// A call takes one round trip. If the server does not have it yet, it takes up to four more.
func (l *Library) Run(ctx context.Context, rdb redis.UniversalClient, name, key string, args ...any) (any, error) {
	c := l.calls[name]
	if c == nil {
		panic(fmt.Sprintf("lua: there is no call %q", name))
	}
	if !l.functions || time.Now().UnixNano() <= l.refused.Load() {
		return l.runScript(ctx, rdb, name, key, args)
	}
	reply, err := send(ctx, rdb, "fcall", c.function, key, args)
	var refusal error // why the call is sent as a script
	if UnknownFunction(err) {
		// The server is new, restarted or flushed. The call has not run.
		err = l.load(ctx, rdb, key)
		moved := redis.HasErrorPrefix(err, "READONLY")
		if err == nil {
			reply, err = send(ctx, rdb, "fcall", c.function, key, args)
			moved = UnknownFunction(err)
		} else if Raised(err) {
			refusal = err
		}
		if moved {
			// The key has moved to another master. The cluster client does not know that
			// yet, and loaded the library on the old master. A script follows the key.
			return l.runScript(ctx, rdb, name, key, args)
		}
	} else if MayNotRun(err) {
		refusal = err
	}
	if refusal == nil {
		return reply, l.explain(name, &l.whole, err)
	}
	again := loadAgainAfter
	if MayNotRun(refusal) {
		again = rightsAgainAfter
	}
	l.refused.Store(time.Now().Add(again).UnixNano())
	if reply, err = l.runScript(ctx, rdb, name, key, args); MayNotRun(err) {
		return nil, fmt.Errorf("%s: Redis refuses the function (%v) and the script: %w", name, refusal, errors.Unwrap(err))
	}
	return reply, err
}

// runScript runs a call as a script. The user can have the right to only one of EVALSHA and
// EVAL. If both are refused, the next call tries functions again.
func (l *Library) runScript(ctx context.Context, rdb redis.UniversalClient, name, key string, args []any) (any, error) {
	c := l.calls[name].script()
	reply, err := send(ctx, rdb, "evalsha", c.sha, key, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") || MayNotRun(err) {
		reply, err = send(ctx, rdb, "eval", c.source, key, args)
	}
	if MayNotRun(err) {
		l.refused.Store(0)
	}
	return reply, l.explain(name, &c.text, err)
}

// load makes the master that holds a key load the library. It returns nil if another client
// has loaded it already.
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

// IsVerb reports whether commands of this name run calls.
func IsVerb(name string) bool {
	return name == "fcall" || name == "evalsha" || name == "eval"
}

// mayNotRun matches the error of Redis for a command that the user has no right to, and for
// a command that the server does not have.
var mayNotRun = regexp.MustCompile(`^NOPERM .* to run the '|^ERR unknown command`)

// MayNotRun reports whether Redis refused a command itself: the user has no right to it, or
// the server does not have it. Then the call has not run. It is false for a command
// that was refused because of its key, and for a server that is not a sentinel.
func MayNotRun(err error) bool {
	var inside *ScriptError
	return Raised(err) && !errors.As(err, &inside) && !strings.Contains(err.Error(), "redis: all sentinels") && mayNotRun.MatchString(raised(err))
}

// raised returns the reply of Redis in err.
func raised(err error) string {
	var answer redis.Error
	errors.As(err, &answer)
	return answer.Error()
}

// UnknownFunction reports whether the server does not have a function, and has run nothing.
func UnknownFunction(err error) bool {
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
