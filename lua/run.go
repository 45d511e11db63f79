package lua

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis does not repeat. By default go-redis repeats a command that got no
// reply. But the call may have run by then, and would run again.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

const (
	// loadAgainAfter is the time for which calls are sent as scripts after a server has refused to
	// load the library, for example because its memory is full.
	loadAgainAfter = time.Second
	// rightsAgainAfter is the time for which calls are sent as scripts after the user was refused
	// FCALL, or FUNCTION LOAD on a server without the library.
	rightsAgainAfter = time.Minute
)

// Run runs a call on the partition whose root is key, with args. It returns the reply of the call as
// go-redis decodes it; a null reply is nil.
//
// The call runs at most once. Errors are
//
//   - an error for which [Raised] returns false: a lost connection, a timeout, an ended context. The call may have run, may still run, or may never have arrived.
//   - *[ScriptError]: the call raised an error.
//   - any other error: Redis refused to run the call.
//
// Run panics if the library has no such call, because names are constants of the program, and an
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
	if err == nil {
		return reply, nil
	}
	var refusal error // the reason to send the call as a script
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
	pause := loadAgainAfter
	if MayNotRun(refusal) {
		pause = rightsAgainAfter
	}
	l.refused.Store(time.Now().Add(pause).UnixNano())
	if reply, err = l.runScript(ctx, rdb, name, key, args); MayNotRun(err) {
		return nil, fmt.Errorf("%s: Redis refuses the function (%v) and the script: %w", name, refusal, errors.Unwrap(err))
	}
	return reply, err
}

// runScript runs a call as a script. It tries EVAL after EVALSHA, because the user can have the
// right to only one of them. If both are refused, the next call tries functions again.
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

// load loads the library into the master that holds a key. It returns nil if another client has
// loaded it already.
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

// IsVerb reports whether a Redis command of this name runs calls.
func IsVerb(name string) bool {
	return name == "fcall" || name == "evalsha" || name == "eval"
}

// mayNotRun matches the error of Redis for a command that the user has no right to, and for
// a command that the server does not have.
var mayNotRun = regexp.MustCompile(`^NOPERM .* to run the '|^ERR unknown command`)

// MayNotRun reports whether Redis refused a command itself, because the user has no right to it, or
// because the server does not have it. Then the call has not run. It is false for a command that was
// refused because of its key, and for a server that is not a sentinel.
func MayNotRun(err error) bool {
	var scriptErr *ScriptError
	return Raised(err) && !errors.As(err, &scriptErr) && !strings.Contains(err.Error(), "redis: all sentinels") && mayNotRun.MatchString(raised(err))
}

// raised returns the reply of Redis in err.
func raised(err error) string {
	var answer redis.Error
	errors.As(err, &answer)
	return answer.Error()
}

// UnknownFunction reports whether the server does not have the function, so that the call has not
// run.
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

// ScriptError is an error that a call raised, or that Redis raised when it compiled the call.
//
// A unit of work decides before it writes, so a unit that raises an error while it decides has
// written nothing (lua/unit/unit.lua). A settle that also fetches is two units: its outcomes can be
// stored although the fetch failed. A call that could not write a key of the wrong type raises an
// error at its end, when everything else is written.
type ScriptError struct {
	Script string // the call: "fetch"
	Where  string // "lua/task/finish.lua:12", or "" if Redis did not report a line
	Err    error  // the reply of Redis, unchanged

	text string // Err without position, digest and stack
}

// Error returns the text of the error with the call, file and line.
func (e *ScriptError) Error() string {
	text := e.text
	if text == "" {
		text = e.Err.Error()
	}
	if e.Where == "" {
		return e.Script + ": " + text
	}
	return e.Script + ": " + e.Where + ": " + text
}

// Unwrap returns the reply of Redis.
func (e *ScriptError) Unwrap() error { return e.Err }

// Raised reports whether err is a reply of Redis, so that the outcome of this call is known. It
// returns false for a lost connection, a timeout and an ended context, because the call may then
// have run. Raised does not apply to an earlier call with the same arguments: if the outcome of that
// call was unknown, a refusal of the repeat leaves it unknown.
func Raised(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// Locate replaces each position in composed text (user_function:123 or user_script:123 on Redis,
// <string>:123 or :123: on miniredis) by the file and line of the source. Use it for errors that a
// call caught and returned as data; errors of Run are located already. If the library has no call of
// this name, Locate returns the message unchanged.
func (l *Library) Locate(name, message string) string {
	c := l.calls[name]
	if c == nil {
		return message
	}
	return position.ReplaceAllStringFunc(message, func(match string) string {
		m := position.FindStringSubmatch(match)
		composed := &l.whole
		if !strings.Contains(m[1], "user_function") {
			composed = &c.script().text
		}
		at := composed.place(m)
		if at == "" {
			return match
		}
		space := m[1][:len(m[1])-len(strings.TrimLeft(m[1], " \t\n"))]
		return space + at + m[3]
	})
}

// position matches a line of composed text in errors of Redis, and of miniredis when it
// compiles or runs a script. When miniredis runs a script, the chunk has no name.
var position = regexp.MustCompile(`(@?\buser_(?:script|function):|<string>:|<string> line:|(?:^|\s):)(\d+)(?:\(column:\d+\))?(:?)`)

// place returns the source file and line for a match of position, "" if it is not a position.
func (t *text) place(match []string) string {
	if strings.TrimSpace(match[1]) == ":" && match[3] == "" {
		return "" // a number between colons is only a position if a colon follows
	}
	n, err := strconv.Atoi(match[2])
	if err != nil || n < 1 || n > len(t.places) {
		return ""
	}
	return t.places[n-1].String()
}

// explain adds the call, and for an error in a script its file and line, to an error of Run.
func (l *Library) explain(name string, composed *text, err error) error {
	if err == nil {
		return nil
	}
	if Raised(err) {
		if where, text, ok := composed.dissect(err.Error()); ok {
			return &ScriptError{Script: name, Where: where, Err: err, text: l.Locate(name, text)}
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

var (
	// wrapper precedes an error of compiling; on miniredis, every error of a script.
	wrapper = regexp.MustCompile(`^(?:ERR )?Error compiling script \(new function\): `)
	// trail follows the error of a script: the digest and line, or a stack.
	trail = regexp.MustCompile(`\s*(?:script: [0-9a-z_]+, (?:on @user_(?:script|function):\d+\.|&c\.)|stack traceback:)`)
	// strict matches the error of miniredis for an unknown global. It names a line of the
	// prelude of miniredis; the script's line is in the stack, below the frame of the prelude.
	strict = regexp.MustCompile(`^:\d+: (Script attempted to .*? stack traceback:.*? in function <:\d+>\s+)(:\d+:)`)
)

// dissect splits the text of an error. ok reports whether the script raised the error. Otherwise
// Redis refused the command before the script ran.
func (t *text) dissect(text string) (where, message string, ok bool) {
	bare := wrapper.ReplaceAllString(text, "")
	ok = bare != text
	bare = strings.TrimPrefix(bare, "ERR ")
	bare = strict.ReplaceAllString(bare, "$2 $1")

	var stack string
	if cut := trail.FindStringIndex(bare); cut != nil {
		bare, stack, ok = bare[:cut[0]], bare[cut[0]:], true
	}
	if m := position.FindStringSubmatchIndex(bare); m != nil && m[0] == 0 {
		// With error(text, 2) the text names the line of the caller, not the line that raised the
		// error.
		if where = t.place(position.FindStringSubmatch(bare)); where != "" {
			bare = strings.TrimLeft(bare[m[1]:], ": ")
		}
	}
	if where == "" {
		where = t.innermost(stack)
	}
	return where, strings.TrimPrefix(bare, "ERR "), ok
}

// innermost returns the first place in a stack, or "".
func (t *text) innermost(stack string) string {
	for _, m := range position.FindAllStringSubmatch(stack, -1) {
		if at := t.place(m); at != "" {
			return at
		}
	}
	return ""
}
