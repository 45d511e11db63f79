package lua

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ScriptError is an error that a call raised, or an error of compiling it.
//
// A unit of work that raises an error while it decides has written nothing
// (lua/unit/unit.lua). A settle that also fetches is two units: its outcomes can be stored
// although the fetch failed. A call that could not write a key of the wrong type raises an
// error at its end, and everything else is written.
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

// Raised reports whether err is a reply of Redis, so that the outcome of this call is known.
// It returns false for a lost connection, a timeout and an ended context: then the call may
// have run. Raised says nothing about an earlier call with the same arguments. If the outcome
// of that call was unknown, a refusal of the repeat leaves it unknown.
func Raised(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// Locate replaces each position in composed text (user_function:123 or user_script:123 on
// Redis, <string>:123 or :123: on miniredis) by the file and line that were written. Use it
// for errors that a call caught and returned as data; errors of Run are located already.
// If the library has no call of this name, Locate returns the message unchanged.
func (l *Library) Locate(name, message string) string {
	c := l.calls[name]
	if c == nil {
		return message
	}
	return position.ReplaceAllStringFunc(message, func(found string) string {
		m := position.FindStringSubmatch(found)
		composed := &l.whole
		if !strings.Contains(m[1], "user_function") {
			composed = &c.script().text
		}
		at := composed.place(m)
		if at == "" {
			return found
		}
		before := m[1][:len(m[1])-len(strings.TrimLeft(m[1], " \t\n"))]
		return before + at + m[3]
	})
}

// position matches a line of composed text in errors of Redis, and of miniredis when it
// compiles or runs a script. When miniredis runs a script, the chunk has no name.
var position = regexp.MustCompile(`(@?\buser_(?:script|function):|<string>:|<string> line:|(?:^|\s):)(\d+)(?:\(column:\d+\))?(:?)`)

// place returns the file and line for a match of position, "" if it is not a position.
func (t *text) place(match []string) string {
	if strings.TrimSpace(match[1]) == ":" && match[3] == "" {
		return "" // without a name before it and a colon behind it, it is any number
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

// dissect splits the text of an error. ok reports whether the script raised the error; if
// not, Redis refused the command before the script ran.
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
		// The text can name the line of the caller, and not the line that raised: error(text, 2).
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
