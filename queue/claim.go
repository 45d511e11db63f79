package queue

import "time"

// Claim is a task that a worker holds. Its instants are on the clock of Redis. Now is the
// instant at which the task was claimed.
type Claim struct {
	ID, Queue, Kind string
	Partition       int
	Epoch           int64
	Payload         []byte
	Headers         map[string]string
	Priority        int
	Retries         int
	MaxRetries      int
	LeaseLosses     int
	RetryExpression string // the worker evaluates it when an attempt fails: see Outcome.Retry
	CreatedAt       time.Time
	Deadline        time.Time // the earliest deadline of the task and its ancestors; zero: none
	AttemptDeadline time.Time // zero: none before Deadline
	TimeoutGrace    time.Duration
	WarnAt          time.Time // when to warn that the deadline is near; zero: never
	Journal         bool      // the task is an agent that has a journal from an earlier run
	Now             time.Time
}

// Attempt returns the number of this attempt, from 1. Releases and lost leases are not counted.
func (c *Claim) Attempt() int { return c.Retries + 1 }

// Verb is the worker's report of an attempt's end.
type Verb string

// The verbs of an [Outcome].
const (
	Complete Verb = "complete"
	Fail     Verb = "fail"
	Release  Verb = "release" // the task is given back, and no retry is used
)

// Outcome is the end of an attempt.
type Outcome struct {
	ID     string
	Epoch  int64
	Verb   Verb
	Result []byte        // of Complete
	Error  string        // of Fail; of Release: why the task is given back, of which 1024 bytes are kept
	Class  Class         // of Fail: ClassError if empty; of Release: ClassNoHandler, ClassDiverged or empty
	Code   int           // of Fail: an exit code, 0 for none
	Delay  time.Duration // of Fail and Release: the time until the task can be fetched again; of Fail: 0 is the task's back-off
	// Retry is the result of the task's retry expression for a failed attempt: "retry", "fail", or
	// "fail: " and why the expression could not be evaluated. "" for a task without an expression.
	Retry string
}

// Verdict is the reply to an [Outcome]. After Fail, the status PENDING means that the task will be
// retried. With VerdictLost, Status is the task's present status: another worker runs it, it waits,
// or it has ended.
type Verdict struct {
	Word   VerdictWord
	Status Status // of VerdictOK and VerdictLost
	Why    string // of VerdictBroken and VerdictInvalid
}

// Accepted reports whether the outcome was accepted.
func (v Verdict) Accepted() bool { return v.Word == VerdictOK }
