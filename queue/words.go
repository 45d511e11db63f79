package queue

// Class is the kind of failure of an attempt.
type Class string

// Classes of failure.
const (
	ClassError   Class = "error"   // retried if a retry is left
	ClassFailed  Class = "failed"  // the handler declared the failure permanent
	ClassTimeout Class = "timeout" // the attempt took longer than its worker allows
	// ClassDeadline means that the handler's context ended before the task's deadline, for its TimeoutGrace.
	ClassDeadline Class = "deadline"
	// ClassNoHandler is for [Release]: the worker has no handler for the task's kind. The task's
	// time in line continues, and its QueueTimeout with it. It can be fetched again after 10 ms. The
	// delay doubles with each such release in a row, up to a second, or up to Outcome.Delay.
	ClassNoHandler Class = "no_handler"
	// ClassDiverged is for [Release]: the worker's program cannot replay the agent, because its code
	// makes other calls than the code that the agent ran before. Use a Delay: a
	// worker whose program can replay the agent may come later.
	ClassDiverged Class = "diverged"
)

// Reason is the cause of a task's end without a result.
type Reason string

// Reasons of FAILED and CANCELLED.
const (
	ReasonError       Reason = "error"        // its last attempt failed
	ReasonFailed      Reason = "failed"       // its handler declared the failure permanent
	ReasonTimeout     Reason = "timeout"      // its time was up: see TimeoutType
	ReasonLeaseLost   Reason = "lease_lost"   // its workers died too often
	ReasonRejected    Reason = "rejected"     // a promise was rejected
	ReasonCancelled   Reason = "cancelled"    // it was cancelled by Cancel or Drain
	ReasonOwnerEnded  Reason = "owner_ended"  // its owner ended
	ReasonWaitTimeout Reason = "wait_timeout" // it was a member of a wait that reached its limit
	ReasonNotNeeded   Reason = "not_needed"   // it was a member of a wait that was decided without it
)

// TimeoutType is the time limit that a task exceeded.
type TimeoutType string

// Types of timeouts.
const (
	TimeoutExecution TimeoutType = "execution" // its own deadline, unless it is the run of a flow
	TimeoutQueue     TimeoutType = "queue"     // QueueTimeout
	TimeoutAttempt   TimeoutType = "attempt"   // AttemptTimeout
	TimeoutWorkflow  TimeoutType = "workflow"  // the deadline of its owner or a further ancestor; of the run of a flow, also its own
)

// timedOutError is the error that a record has after a timeout, whatever its type.
const timedOutError = "Task exceeded deadline"

// ErrorText returns the error of a record for people. The error that is stored is the same for all timeouts, since programs
// compare it. A task that took too long in line or in an attempt can have time left until its deadline, so ErrorText names
// the limit.
func (t TimeoutType) ErrorText(stored string) string {
	if stored == timedOutError {
		switch t {
		case TimeoutQueue:
			return "Task exceeded queue timeout"
		case TimeoutAttempt:
			return "Task exceeded attempt timeout"
		}
	}
	return stored
}

// Role is the purpose of a task that no worker runs.
type Role string

// Roles. A task that workers run has none.
const (
	RolePromise Role = "promise"
	RoleTimer   Role = "timer"
)

// EventLevel selects the events that a namespace writes.
type EventLevel string

// Levels of events.
const (
	EventsAll      EventLevel = "all"      // every transition
	EventsTerminal EventLevel = "terminal" // ends, and the other events that docs/reference/events.md lists
	EventsNone     EventLevel = "none"
)

// VerdictWord is the first word of the reply to an outcome.
type VerdictWord string

// Words of a [Verdict].
const (
	VerdictOK      VerdictWord = "OK"      // accepted; Status is the task's new status
	VerdictLost    VerdictWord = "LOST"    // the task is no longer the caller's: drop the result, and do not retry
	VerdictMissing VerdictWord = "MISSING" // there is no such task
	VerdictBroken  VerdictWord = "BROKEN"  // its record is damaged; Why has the reason
	VerdictInvalid VerdictWord = "INVALID" // the outcome is not valid, and nothing was changed; Why has the reason
)
