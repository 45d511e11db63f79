package queue

// Class is what kind of failure an attempt had.
type Class string

// Classes of failure.
const (
	ClassError   Class = "error"   // may be retried
	ClassFailed  Class = "failed"  // declared permanent
	ClassTimeout Class = "timeout" // the attempt took longer than its worker allows
	// ClassDeadline says that the handler was stopped before the task's deadline, in its grace.
	ClassDeadline Class = "deadline"
)

// Reason is why a task ended without a result.
type Reason string

// Reasons of FAILED and CANCELLED.
const (
	ReasonError       Reason = "error"        // its last attempt failed
	ReasonFailed      Reason = "failed"       // its handler declared the failure permanent
	ReasonTimeout     Reason = "timeout"      // its time was up: see TimeoutType
	ReasonLeaseLost   Reason = "lease_lost"   // its workers died too often
	ReasonRejected    Reason = "rejected"     // a promise was rejected
	ReasonCancelled   Reason = "cancelled"    // somebody cancelled it
	ReasonOwnerEnded  Reason = "owner_ended"  // the task that it belonged to ended
	ReasonWaitTimeout Reason = "wait_timeout" // the wait that it was a member of ran out
	ReasonNotNeeded   Reason = "not_needed"   // a wait was decided without it
)

// TimeoutType is which time of a task was up.
type TimeoutType string

// Types of time-outs.
const (
	TimeoutExecution TimeoutType = "execution" // its own deadline
	TimeoutQueue     TimeoutType = "queue"     // QueueTimeout
	TimeoutAttempt   TimeoutType = "attempt"   // AttemptTimeout
	TimeoutWorkflow  TimeoutType = "workflow"  // the time of the task that it belongs to
)

// Role is what a task is for that no worker runs.
type Role string

// Roles. A task that workers run has none.
const (
	RolePromise Role = "promise"
	RoleTimer   Role = "timer"
)

// EventLevel is which events a namespace tells.
type EventLevel string

// Levels of events.
const (
	EventsAll      EventLevel = "all"      // every transition
	EventsTerminal EventLevel = "terminal" // ends, and what else docs/events.md says
	EventsNone     EventLevel = "none"
)

// VerdictWord is what Redis made of an outcome.
type VerdictWord string

// Words of a [Verdict].
const (
	VerdictOK      VerdictWord = "OK"      // accepted, and Status says what the task is now
	VerdictLost    VerdictWord = "LOST"    // the task is no longer the caller's: drop the result, and do not retry
	VerdictMissing VerdictWord = "MISSING" // there is no such task
	VerdictBroken  VerdictWord = "BROKEN"  // its record is damaged
)
