// Package refusal defines the errors of Curfew that a caller can act on.
package refusal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/clip"
)

// Errors that a caller can act on. Compare them with errors.Is.
var (
	// ErrInvalid means that an argument is invalid, and nothing was changed. Most of these errors
	// are an *InvalidError, which names the field.
	ErrInvalid = errors.New("invalid argument")
	// ErrNotFound means that no task has the id: it belongs to another namespace, or the record was removed
	// after its retention. A text that cannot be the id of a task of this namespace is ErrInvalid instead. For a
	// call about a worker it means that the worker does not exist.
	ErrNotFound = errors.New("no such task")
	// ErrNotEnded means that the task has not ended yet.
	ErrNotEnded = errors.New("the task has not ended")
	// ErrWaitOver means that the context of a wait ended before the task did. The task goes on. The error is
	// the cause of the context too; that of a task which timed out itself is not ErrWaitOver.
	ErrWaitOver = errors.New("the wait is over, and the task goes on")
	// ErrNeeded means that the record of an ended task cannot be deleted yet, because its owner or
	// its children still need it. The error names them.
	ErrNeeded = errors.New("the record is still needed")
	// ErrConflict means that another task has the idempotency key, name or child's id. For a key,
	// its kind or payload differs; for a name or id, its kind, queue or payload. Use another key,
	// name or id, or the content of the first task.
	ErrConflict = errors.New("idempotency key, name or id belongs to a task with other content")
	// ErrOwnerEnded means that the owner of the child has ended, so the child was not created.
	ErrOwnerEnded = errors.New("owner has ended")
	// ErrCancelled means that the task was cancelled.
	ErrCancelled = errors.New("task cancelled")
	// ErrUnknown means that the outcome of a call is unknown, because it was repeated and got no
	// reply. If the call names the id of a task or an idempotency key, make it again. Otherwise read
	// the state first. A call that only reads does not return ErrUnknown.
	ErrUnknown = errors.New("outcome unknown: no reply came from Redis; make the call again if it names an id or an idempotency key, otherwise read the state first")
	// ErrUnavailable means that Redis could not be reached or cannot work now, and that nothing was
	// changed. The error has the cause: for example, Redis loads its data, has no master, cannot
	// save, or has too many clients. The call was repeated for some seconds. It can succeed later.
	ErrUnavailable = errors.New("the Redis server is not available, and nothing was changed")
	// ErrNoAccess means that Redis does not let the client in: the password is missing or wrong, or
	// the server is in protected mode. Waiting does not help.
	ErrNoAccess = errors.New("the Redis server does not let this client in")
	// ErrMismatch means that the client does not fit the server at its address. For example, the
	// server is not a Redis, requires or lacks TLS, has a certificate that is not trusted, lacks the
	// database, or is a cluster while the client is for one server. Waiting does not help.
	ErrMismatch = errors.New("the client does not fit the server at its address")
	// ErrFull means that Redis has reached its maxmemory. New tasks are refused; existing tasks
	// still run and end. Raise maxmemory, or shorten retention.
	ErrFull = errors.New("the memory of Redis is full (maxmemory) and nothing was stored: raise maxmemory or shorten retention")
	// ErrQueueFull means that the queue has as many tasks in line as Queue.LimitLength allows, so
	// the task was not stored. Enqueue it again later, in longer and longer intervals, or drop it.
	ErrQueueFull = errors.New("the queue is full")
	// ErrWrongType means that a key of the namespace has a type that Curfew did not give it. Enqueue
	// and Suspend have changed nothing. Every other call has done everything that did not need this
	// key, so read the state. Use another namespace, or remove the key.
	ErrWrongType = errors.New("a key of this namespace holds data that Curfew did not write: use another namespace or remove the key")
	// ErrBroken means that the record of a task or of the namespace is damaged.
	ErrBroken = errors.New("the record is broken: see the namespace's key `broken`, and repair or remove the record")
	// ErrPartitions means that the namespace has another number of partitions than
	// Config.Partitions.
	ErrPartitions = errors.New("the namespace has another number of partitions: it is fixed when a namespace is created; set Config.Partitions to 0 to use its number")
	// ErrNoNamespace means that the namespace does not exist. With AccessRead or Config.Existing, Open does not create it.
	ErrNoNamespace = errors.New("there is no such namespace: open it once with a program that may create it, or use another name")
	// ErrRemoving means that the namespace is being removed. Nothing was changed.
	ErrRemoving = errors.New("the namespace is being removed: `curfew namespace rm` finishes that")
	// ErrNewer means that the records of the namespace have a newer version than this program
	// supports. Nothing was changed. Upgrade the program.
	ErrNewer = errors.New("the namespace has a newer version: upgrade this program")
	// ErrOlder means that the records of the namespace have an older version than this program
	// supports. Nothing was changed. docs/how-to/upgrade.md describes the upgrade of a namespace.
	ErrOlder = errors.New("the namespace has an older version: upgrade it with a release in between, or use a new namespace")
	// ErrNoRight means that the Redis user lacks a right (ACL) that Curfew needs. The error names
	// the right, and the command that grants it.
	ErrNoRight = errors.New("the Redis user lacks a right")
	// ErrClosed means that the Redis client was closed. Make another one.
	ErrClosed = errors.New("the Redis client was closed: make another one")
	// ErrUnfit means that Curfew cannot work with this Redis or that, with Config.Strict, its
	// settings can lose tasks. The error has the reason.
	ErrUnfit = errors.New("this Redis cannot be used")
)

// Errors of agents.
var (
	// ErrNotOwner means that a task is not a child of the agent that named it.
	//lint:ignore ST1005 this text is part of what is promised
	ErrNotOwner = errors.New("Task not owned by agent")
	// ErrNotHeld means that the caller's attempt no longer holds the agent: another worker runs the
	// agent, it waits, or it has ended. Drop the results of the attempt, and do not report it.
	ErrNotHeld = errors.New("this attempt no longer holds the agent")
	// ErrStopping means that the agent was cancelled and only has its grace to clean up. It must not
	// start anything.
	ErrStopping = fmt.Errorf("%w: the agent must stop, and cannot start anything", ErrCancelled)
	// ErrDiverged means that an agent's replay made a different call than its earlier run at the
	// same place.
	ErrDiverged = errors.New("the replay differs from what the agent did before")
)

// Permanent reports whether the cause of an error is the configuration of the program or the server.
// Waiting does not help, so calls that return such an error were not repeated.
func Permanent(err error) bool {
	for _, kind := range []error{ErrNoAccess, ErrMismatch, ErrNoRight, ErrUnfit, ErrNewer, ErrOlder, ErrRemoving, ErrClosed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// InvalidError names the invalid argument, and the reason. Nothing was changed.
type InvalidError struct{ Field, Why string }

// Error returns the field followed by the reason.
func (e *InvalidError) Error() string { return e.Field + " " + e.Why }

// Is reports whether target is ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Invalid returns an *InvalidError.
func Invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Why: fmt.Sprintf(format, args...)}
}

// Error names the operation that failed, and its task. It wraps the cause.
type Error struct {
	Op, Task string // "cancel", "0-01J9…"; Task is empty if the call is not about one task
	Err      error
}

// Error returns one line, unless the text of Err has several.
func (e *Error) Error() string {
	if e.Task == "" {
		return e.Op + ": " + e.Err.Error()
	}
	id := e.Task
	if !looksLikeID(id) {
		id = strconv.Quote(Clip(id)) // the string comes from a caller, and must not break a log line
	}
	return e.Op + " " + id + ": " + e.Err.Error()
}

// looksLikeID reports whether a string needs no quotes, because it is a partition, a dash, and the
// characters of ids.
func looksLikeID(s string) bool {
	partition, rest, separated := strings.Cut(s, "-")
	return separated && len(partition) <= 3 && len(rest) <= 500 && only(partition, "0123456789") &&
		only(rest, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._!-")
}

func only(s, characters string) bool { return s != "" && strings.Trim(s, characters) == "" }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failed returns an *Error, or nil if err is nil.
func Failed(op, task string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Task: task, Err: err}
}

// Clip shortens a string for a quote in an error: to its first 64 bytes, followed by … if there were
// more.
func Clip(s string) string { return clip.Text(s, 64) }
