package lua

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ScriptError is an error that a call raised while it ran, or that kept it from compiling.
// A unit of work that raises has written nothing (lua/store/unit.lua); a settle that also
// fetches is two units, and its outcomes may be stored.
type ScriptError struct {
	Script string // the call: "fetch"
	Where  string // "lua/task/finish.lua:12", or "" if Redis did not say
	Err    error  // what Redis answered, unchanged

	text string // Err without position, digest and stack
}

// Error is the text with the place in our files.
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

// Unwrap returns the answer of Redis.
func (e *ScriptError) Unwrap() error { return e.Err }

// Raised tells whether err is an answer of Redis, so that the outcome of this call
// is known. It is false for a lost connection, a timeout and an ended context: then
// the script may have run. It says nothing of an earlier call with the same
// arguments: if the outcome of that one was unknown, a refusal leaves it so.
func Raised(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// Locate rewrites each position in composed text (user_function:123 or user_script:123
// on Redis, <string>:123 or :123: on miniredis) to the file and line that were written.
// It is for errors that a call caught and returns as data; Run's own errors are
// located already.
func (l *Library) Locate(name, message string) string {
	c := l.calls[name]
	if c == nil {
		return message
	}
	return position.ReplaceAllStringFunc(message, func(found string) string {
		m := position.FindStringSubmatch(found)
		composed := &c.script
		if strings.Contains(m[1], "user_function") {
			composed = &l.whole
		}
		at := composed.place(m)
		if at == "" {
			return found
		}
		before := m[1][:len(m[1])-len(strings.TrimLeft(m[1], " \t\n"))]
		return before + at + m[3]
	})
}

// position is a line of the composed script: of Redis, of miniredis when it
// compiles, and of miniredis when it runs, where the chunk has no name.
var position = regexp.MustCompile(`(@?\buser_(?:script|function):|<string>:|<string> line:|(?:^|\s):)(\d+)(?:\(column:\d+\))?(:?)`)

// place is where a match of position was written, "" if it is no position.
func (t *text) place(match []string) string {
	if strings.TrimSpace(match[1]) == ":" && match[3] == "" {
		return "" // no name before and no colon after: any number of a text
	}
	n, err := strconv.Atoi(match[2])
	if err != nil || n < 1 || n > len(t.places) {
		return ""
	}
	return t.places[n-1].String()
}

// explain says where an error of Redis or of the network came from.
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
	// wrapper precedes what does not compile; on miniredis, every error of a script.
	wrapper = regexp.MustCompile(`^(?:ERR )?Error compiling script \(new function\): `)
	// trail follows what a script raised: the digest and line, or a stack.
	trail = regexp.MustCompile(`\s*(?:script: [0-9a-z_]+, (?:on @user_(?:script|function):\d+\.|&c\.)|stack traceback:)`)
	// strict is what miniredis says of an unknown global. It names a line of its own
	// prelude; the script's is in the stack, below the prelude's frame.
	strict = regexp.MustCompile(`^:\d+: (Script attempted to .*? stack traceback:.*? in function <:\d+>\s+)(:\d+:)`)
)

// dissect takes an error's text apart. ok says whether it came out of the script,
// and not from Redis before the script ran.
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
		// An error that names its own line may mean its caller's: error(text, 2).
		if where = t.place(position.FindStringSubmatch(bare)); where != "" {
			bare = strings.TrimLeft(bare[m[1]:], ": ")
		}
	}
	if where == "" {
		where = t.innermost(stack)
	}
	return where, strings.TrimPrefix(bare, "ERR "), ok
}

// innermost is the first place that a stack names.
func (t *text) innermost(stack string) string {
	for _, m := range position.FindAllStringSubmatch(stack, -1) {
		if at := t.place(m); at != "" {
			return at
		}
	}
	return ""
}
