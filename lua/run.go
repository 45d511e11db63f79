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

// once is a command that go-redis does not repeat. By default it repeats what got
// no answer, in silence; the call may have run by then, and would run again.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

const (
	// loadAgainAfter is how long calls are sent as scripts once a server has refused to
	// load the library: it may be full.
	loadAgainAfter = time.Second
	// rightsAgainAfter is how long calls are sent as scripts once the user was found to
	// lack the right to FCALL, or to load a library that nobody has loaded.
	rightsAgainAfter = time.Minute
)

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
	if !l.functions || time.Now().UnixNano() <= l.refused.Load() {
		return l.runScript(ctx, rdb, name, key, args)
	}
	reply, err := send(ctx, rdb, "fcall", c.function, key, args)
	var refusal error // why the call is sent as a script
	if unknownFunction(err) {
		// A new, restarted or flushed server. It has not run anything.
		err = l.load(ctx, rdb, key)
		moved := redis.HasErrorPrefix(err, "READONLY")
		if err == nil {
			reply, err = send(ctx, rdb, "fcall", c.function, key, args)
			moved = unknownFunction(err)
		} else if Raised(err) {
			refusal = err
		}
		if moved {
			// The key has another master now, and a cluster client that does not know
			// it yet told the old one. It follows the key with a script.
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
		return nil, fmt.Errorf("%s: neither as a function (%v) nor as a script: %w", name, refusal, errors.Unwrap(err))
	}
	return reply, err
}

// runScript runs a call as a script. The user may have the right to one of EVALSHA and
// EVAL alone. Without either, functions are tried again the next time.
func (l *Library) runScript(ctx context.Context, rdb redis.UniversalClient, name, key string, args []any) (any, error) {
	c := l.calls[name]
	reply, err := send(ctx, rdb, "evalsha", c.sha, key, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") || MayNotRun(err) {
		reply, err = send(ctx, rdb, "eval", c.source, key, args)
	}
	if MayNotRun(err) {
		l.refused.Store(0)
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

// mayNotRun is what Redis says of a command that the user has no right to, and of one
// that the server's owner has taken away.
var mayNotRun = regexp.MustCompile(`^NOPERM .* to run the '|^ERR unknown command`)

// MayNotRun tells whether Redis refused a command as such: the user has no right to it,
// or there is no such command. Nothing has run.
func MayNotRun(err error) bool {
	var inside *ScriptError
	return Raised(err) && !errors.As(err, &inside) && mayNotRun.MatchString(raised(err))
}

// raised is what Redis said.
func raised(err error) string {
	var answer redis.Error
	errors.As(err, &answer)
	return answer.Error()
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
