package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/refusal"
)

// Problem is the body of each answer that is an error: {"error":{"word":"not_found","sentence":"…","field":"id"}}. Programs act on
// the status and the word, people read the sentence.
type Problem struct {
	Error struct {
		Word     string `json:"word"`
		Sentence string `json:"sentence"`
		Field    string `json:"field,omitempty"` // the parameter or member that is wrong
		// Faults is all that is wrong with a definition of a flow.
		Faults []lines.Fault `json:"faults,omitempty"`
	} `json:"error"`
}

// failure is an error with its status.
type failure struct {
	status int
	Problem
	after time.Duration // when it can succeed, 0: unknown
	cause error         // for the log
	ends  bool          // the connection ends, since the body was not read to its end
}

// Error returns the sentence.
func (f *failure) Error() string { return f.Problem.Error.Sentence }

func fail(status int, word, sentence string, args ...any) *failure {
	f := &failure{status: status}
	f.Problem.Error.Word, f.Problem.Error.Sentence = word, fmt.Sprintf(sentence, args...)
	return f
}

func (f *failure) of(field string) *failure {
	f.Problem.Error.Field = field
	return f
}

func (f *failure) retry(after time.Duration) *failure {
	f.after = after
	return f
}

// because sets the cause, for the log.
func (f *failure) because(cause error) *failure {
	f.cause = cause
	return f
}

// unread marks that the rest of the body was not read, so that the connection is closed.
func (f *failure) unread() *failure {
	f.ends = true
	return f
}

// wrong returns the failure for a parameter or member that is not valid. The sentence begins with its name.
func wrong(field, format string, args ...any) *failure {
	return fail(http.StatusBadRequest, "invalid", "%s "+format, append([]any{field}, args...)...).of(field)
}

var (
	errAway     = errors.New("no answer from Redis")
	errTooLong  = errors.New("the request has taken too long")
	errWaitOver = errors.New("the wait is over")
)

// words has the status and the word of each refusal. The first row that matches counts.
var words = []struct {
	err    error
	status int
	word   string
	after  time.Duration
}{
	{refusal.ErrInvalid, http.StatusBadRequest, "invalid", 0},
	{refusal.ErrNotOwner, http.StatusForbidden, "not_owner", 0},
	{refusal.ErrNoNamespace, http.StatusServiceUnavailable, "no_namespace", 10 * time.Second}, // it is served, but not in Redis
	{refusal.ErrNotFound, http.StatusNotFound, "not_found", 0},
	{refusal.ErrNotEnded, http.StatusConflict, "not_ended", 0},
	{refusal.ErrNeeded, http.StatusConflict, "needed", 0},
	{refusal.ErrConflict, http.StatusConflict, "conflict", 0},
	{refusal.ErrOwnerEnded, http.StatusConflict, "owner_ended", 0},
	{refusal.ErrCancelled, http.StatusConflict, "cancelled", 0},
	{refusal.ErrNotHeld, http.StatusConflict, "not_held", 0},
	{refusal.ErrDiverged, http.StatusConflict, "diverged", 0},
	{refusal.ErrQueueFull, http.StatusTooManyRequests, "queue_full", 5 * time.Second},
	{refusal.ErrUnknown, http.StatusGatewayTimeout, "unknown", time.Second},
	{refusal.ErrFull, http.StatusServiceUnavailable, "full", 10 * time.Second},
	{refusal.ErrRemoving, http.StatusServiceUnavailable, "removing", 10 * time.Second},
	{refusal.ErrUnavailable, http.StatusServiceUnavailable, "unavailable", time.Second},
	{errAway, http.StatusServiceUnavailable, "unavailable", time.Second},
	{errTooLong, http.StatusGatewayTimeout, "timeout", time.Second},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "timeout", time.Second},
	{context.Canceled, http.StatusServiceUnavailable, "unavailable", time.Second}, // the client is gone, or the server stops
}

// setup are refusals whose cause is how the server of this API is set up. Their sentences can name addresses and users, so the
// client gets the sentence of the refusal, and the log has the rest.
var setup = []error{refusal.ErrNoAccess, refusal.ErrMismatch, refusal.ErrNoRight, refusal.ErrClosed, refusal.ErrUnfit, refusal.ErrPartitions,
	refusal.ErrNewer, refusal.ErrOlder, refusal.ErrWrongType, refusal.ErrBroken}

// failureOf returns the answer for an error.
func failureOf(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	var faults flow.Faults
	if errors.As(err, &faults) {
		return ofFaults(faults)
	}
	for _, row := range words {
		if errors.Is(err, row.err) {
			f = fail(row.status, row.word, "%s", sentenceOf(err, row.err)).retry(row.after)
			f.cause = err
			var invalid *refusal.InvalidError
			if errors.As(err, &invalid) {
				f.of(invalid.Field)
			}
			return f
		}
	}
	for _, kind := range setup {
		if errors.Is(err, kind) {
			f = fail(http.StatusServiceUnavailable, "misconfigured", "%s: the log of this server says more", kind)
			f.cause = err
			return f
		}
	}
	f = fail(http.StatusInternalServerError, "internal", "the server met an error that it does not know: its log has it")
	f.cause = err
	return f
}

// sentenceOf returns the text of an error for the client. Errors of the connection can name addresses, so these texts are not used.
func sentenceOf(err, known error) string {
	switch known {
	case refusal.ErrUnavailable, errAway, context.Canceled:
		return "Redis does not answer: make the request again later"
	case refusal.ErrUnknown:
		return "Redis did not answer in time, so it is unknown whether the request had its effect: make it again if it names an id, an idempotency key, a call, a seq or an epoch, otherwise read the state first"
	case errTooLong, context.DeadlineExceeded:
		return "the request took too long and was given up: read less at once"
	case refusal.ErrNoNamespace:
		return "the namespace is not in Redis, and nothing was changed: it was lost with all its tasks, or never created. An operator must create it with `curfew namespace create`, with as many partitions as before; this server needs no restart"
	case refusal.ErrFull, refusal.ErrRemoving:
		return known.Error()
	}
	return err.Error()
}
