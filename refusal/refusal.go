// Package refusal has the errors of Curfew that a caller may act on. Package queue has the same
// ones by the same names, for programs that import it anyway.
package refusal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// What a caller may act on. Ask with errors.Is.
var (
	// ErrInvalid means that an argument is wrong and nothing was changed. The
	// error is an *InvalidError that names the field.
	ErrInvalid = errors.New("invalid argument")
	// ErrNotFound means that there is no such task: the id is wrong, or the
	// record went with its retention.
	ErrNotFound = errors.New("no such task")
	// ErrNotEnded means that the task has no outcome yet.
	ErrNotEnded = errors.New("the task has not ended")
	// ErrConflict means that the idempotency key belongs to a task of another
	// kind or payload. Use another key, or send what was sent first.
	ErrConflict = errors.New("idempotency key belongs to a task with other content")
	// ErrOwnerEnded means that the task a child was to belong to has ended.
	ErrOwnerEnded = errors.New("owner has ended")
	// ErrCancelled means that the task was cancelled.
	ErrCancelled = errors.New("task cancelled")
	// ErrUnknown means that the call may or may not have had its effect: no answer
	// came although it was repeated. The same call may be made again if it names what it is
	// about: the id of a task, or an idempotency key. Otherwise look first. A call that only reads does not
	// return it.
	ErrUnknown = errors.New("outcome unknown: no answer came from Redis; make the call again if it names an id or an idempotency key, otherwise look first")
	// ErrUnavailable means that Redis could not be reached or does not work for now (it loads, it
	// has no master, it cannot save, it has too many clients), and that nothing was changed. The error says
	// which. It was tried again for some seconds, and may come right.
	ErrUnavailable = errors.New("the Redis server is not available, and nothing was changed")
	// ErrNoAccess means that Redis does not let the client in: it wants a password or another
	// one, or is in protected mode. Waiting does not help.
	ErrNoAccess = errors.New("the Redis server does not let this client in")
	// ErrMismatch means that the client is not made for what answers at its address: no Redis, no
	// TLS or TLS only, a certificate that is not trusted, no such database, a cluster or none. Waiting does not help.
	ErrMismatch = errors.New("the client does not fit the server at its address")
	// ErrFull means that Redis is at its maxmemory. New tasks are refused, what is
	// there drains. Raise maxmemory, or shorten retention.
	ErrFull = errors.New("the memory of Redis is full (maxmemory) and nothing was stored: raise maxmemory or shorten retention")
	// ErrWrongType means that a key in our key space holds something else. Nothing
	// was changed. Use another namespace, or remove what is in the way.
	ErrWrongType = errors.New("a key of this namespace holds something that is not ours: use another namespace or remove it")
	// ErrBroken means that a record, of a task or of the namespace, cannot be worked with.
	ErrBroken = errors.New("the record is broken: see the namespace's key `broken`, and mend or remove it")
	// ErrPartitions means that the namespace has another number of partitions.
	ErrPartitions = errors.New("the namespace has another number of partitions: it is fixed when a namespace is created; leave Config.Partitions 0 to take what is there")
	// ErrNoNamespace means that the namespace does not exist. A program that only reads does not create it.
	ErrNoNamespace = errors.New("there is no such namespace: open it once with a program that works with it, or name another")
	// ErrNewer means that the namespace was made by a newer version of Curfew.
	ErrNewer = errors.New("the namespace was made by a newer version: upgrade this program")
	// ErrOlder means that the namespace was made by an older version of Curfew, whose records
	// this one does not read.
	ErrOlder = errors.New("the namespace was made by an older version, whose records this program does not read: use a new namespace")
	// ErrNoRight means that the Redis user lacks a right (ACL) that Curfew needs. The error
	// says which one, and how it is granted.
	ErrNoRight = errors.New("the Redis user lacks a right")
	// ErrClosed means that the Redis client was closed. Make another one.
	ErrClosed = errors.New("the Redis client was closed: make another one")
	// ErrUnfit means that this Redis cannot or (Config.Strict) must not be used.
	ErrUnfit = errors.New("this Redis is not fit")
)

// Errors of agents.
var (
	// ErrNotOwner means that a task is no child of the agent that named it.
	//lint:ignore ST1005 this text is part of what is promised
	ErrNotOwner = errors.New("Task not owned by agent")
	// ErrNotHeld means that the agent is no longer the caller's: somebody else runs it, it
	// waits, or it has ended. Drop what was done, and do not report it.
	ErrNotHeld = errors.New("the agent is not this attempt's any more")
	// ErrStopping means that the agent was cancelled, and has its grace to clean up.
	ErrStopping = fmt.Errorf("%w: the agent is to stop, and begins nothing any more", ErrCancelled)
	// ErrDiverged means that an agent's replay came to something else than its first run.
	ErrDiverged = errors.New("the replay differs from what the agent did before")
)

// Permanent tells whether an error is one of how the program is set up: waiting does not mend it,
// and calls that return it were not repeated.
func Permanent(err error) bool {
	for _, kind := range []error{ErrNoAccess, ErrMismatch, ErrNoRight, ErrUnfit, ErrClosed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// InvalidError names what was wrong with an argument. Nothing was changed.
type InvalidError struct{ Field, Why string }

// Error is a sentence that begins with the field.
func (e *InvalidError) Error() string { return e.Field + " " + e.Why }

// Is makes it an ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Invalid is the error of a wrong argument.
func Invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Why: fmt.Sprintf(format, args...)}
}

// Error says which operation failed on which task. It wraps the cause.
type Error struct {
	Op, Task string // "cancel", "0-01J9…"; no task where the call is about none
	Err      error
}

// Error is one line for a log.
func (e *Error) Error() string {
	if e.Task == "" {
		return e.Op + ": " + e.Err.Error()
	}
	id := e.Task
	if !looksLikeID(id) {
		id = strconv.Quote(Clip(id)) // a stranger's string: a log line must stay one
	}
	return e.Op + " " + id + ": " + e.Err.Error()
}

// looksLikeID tells whether a string can stand in a line as it is: a partition, a dash, and
// what ids are made of.
func looksLikeID(s string) bool {
	partition, rest, found := strings.Cut(s, "-")
	return found && len(partition) <= 3 && len(rest) <= 500 && only(partition, "0123456789") &&
		only(rest, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._!-")
}

func only(s, characters string) bool { return s != "" && strings.Trim(s, characters) == "" }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failed says which operation failed on which task. It is nil if err is.
func Failed(op, task string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Task: task, Err: err}
}

// Clip keeps a stranger's string from flooding an error's text.
func Clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
