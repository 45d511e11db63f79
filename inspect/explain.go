package inspect

import (
	"context"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Why is the reason why a task is in its current state. The list is closed.
type Why string

// The reasons for the state of a live task.
const (
	WhyInLine      Why = "in_line"      // it is in the line of its queue
	WhyWoken       Why = "woken"        // its wait is over, and it is in line to continue
	WhyDelayed     Why = "delayed"      // it starts later: its producer set a delay
	WhyHeld        Why = "held"         // only some workers can run it: see Explanation.Held
	WhyGivenBack   Why = "given_back"   // its worker gave it back with a delay; this does not count as an attempt
	WhyBackingOff  Why = "backing_off"  // an attempt failed, and the next one starts after the back-off
	WhyPromise     Why = "promise"      // it is a promise that has not been settled
	WhyTimer       Why = "timer"        // it is a timer that is not due yet
	WhyRunning     Why = "running"      // a worker runs it
	WhyCancelling  Why = "cancelling"   // it was cancelled, and its handler has its grace to clean up
	WhyWaiting     Why = "waiting"      // it is an agent, and its wait is not decided
	WhyWaking      Why = "waking"       // it is an agent whose wait is decided: losers are ended before it is woken
	WhyAttemptOver Why = "attempt_over" // its attempt is out of time, and it will be retried
	WhyOverdue     Why = "overdue"      // its end is decided, and not written yet
	WhyDoomed      Why = "doomed"       // an owner has ended, so this task ends too; its end is not written yet
	WhyBroken      Why = "broken"       // its record cannot be worked with
)

// The reasons for the end of a task.
const (
	WhyCompleted  Why = "completed"
	WhyFailed     Why = "failed"
	WhyTimedOut   Why = "timed_out"
	WhyCancelled  Why = "cancelled"
	WhyOwnerEnded Why = "owner_ended" // its owner ended: CANCELLED, or FAILED if the owner timed out
)

// Explanation describes why a task is in its current state, and when that state ends at the latest.
// Its JSON has the result of String as "sentence".
type Explanation struct {
	ID     string       `json:"id"`
	Kind   string       `json:"kind,omitempty"`
	Queue  string       `json:"queue,omitempty"`
	Status queue.Status `json:"status,omitempty"` // as it is stored
	Why    Why          `json:"why"`
	Now    time.Time    `json:"now"`               // clock of Redis when the task was read
	Since  time.Time    `json:"since_at,omitzero"` // start of the attempt or wait, instant of the cancellation or end; zero if none is stored

	// Bound is the latest instant at which the task leaves its current state: it is claimed, started,
	// woken, retried or ended.
	Bound Bound `json:"bound"`
	// EndsBy is the latest instant at which the task ends, whatever happens until then.
	EndsBy Bound `json:"ends_by"`

	Retries    int    `json:"retries,omitempty"` // failed attempts that were retried or will be
	MaxRetries int    `json:"max_retries,omitempty"`
	LastError  string `json:"last_error,omitempty"` // error of the newest failed attempt
	// LeaseLosses is how many workers in a row died while they ran the task.
	LeaseLosses int64 `json:"lease_losses,omitempty"`
	// ReleaseReason is the reason with which the last worker gave the task back, "" without one. It
	// is kept until the task is claimed again.
	ReleaseReason string `json:"release_reason,omitempty"`

	// ResultType is the JSON that a promise can be resolved with: see queue.Task. "": any bytes, or it is no promise.
	ResultType string `json:"result_type,omitempty"`

	// GivenBack is the number of times that workers gave the task back without a result. It is set
	// for a PENDING task that never waited.
	GivenBack int64 `json:"given_back,omitempty"`

	Held   queue.HeldReason `json:"held,omitempty"`    // with WhyHeld, and if it ended while it was held
	HeldBy string           `json:"held_by,omitempty"` // programs that could not replay it, with commas between

	Line *ExplainedLine `json:"line,omitempty"` // set for a task in line
	Run  *ExplainedRun  `json:"run,omitempty"`  // set for a RUNNING task
	Wait *ExplainedWait `json:"wait,omitempty"` // set for a WAITING agent
	Lag  *ExplainedLag  `json:"lag,omitempty"`  // set if something bounds the task and there were recent timeouts
	End  *ExplainedEnd  `json:"end,omitempty"`  // set if the task has ended or its end is decided

	Warnings []Warning `json:"warnings,omitempty"`
}

// BoundKind is the kind of a [Bound]'s instant. The list is closed.
type BoundKind string

// The kinds of bounds.
const (
	BoundNone     BoundKind = "none"           // there is no bound: this can wait without limit
	BoundDeadline BoundKind = "deadline"       // the task's own deadline
	BoundOwner    BoundKind = "owner_deadline" // the deadline of an owner, if the task's own is not earlier
	BoundQueue    BoundKind = "queue_limit"    // the QueueTimeout: the task ends unless it is claimed before
	BoundAttempt  BoundKind = "attempt_limit"  // the limit of an attempt, which includes the waits of an agent
	BoundWait     BoundKind = "wait_limit"     // the limit of a wait; if Task is a member, the limit begins no later than with its end
	BoundPatience BoundKind = "patience"       // the patience of a wait with one member
	BoundGrace    BoundKind = "grace"          // the grace of a cancelled task
	BoundTimer    BoundKind = "timer"          // the instant at which a timer completes
	BoundStart    BoundKind = "start"          // the instant at which a delayed task gets in line
	BoundDecided  BoundKind = "decided"        // the instant is past; a reaper or the next call writes the change
	BoundFinal    BoundKind = "final"          // the task has ended, which never changes
)

// Bound is the latest instant at which a state ends. At never moves to a later instant. A reaper
// writes the change shortly after At; [Explanation.Lag] has the delay of recent timeouts.
type Bound struct {
	Kind BoundKind         `json:"kind"`
	At   time.Time         `json:"at,omitzero"`      // zero for BoundNone and BoundFinal
	Left duration.Duration `json:"left_ms,omitzero"` // from Explanation.Now to At; 0 if At is past
	Task string            `json:"task,omitempty"`   // the task to which the instant belongs: this task, an owner, or a member of the wait
}

// ExplainedLine describes the line that a task is in. All figures are those of its partition.
type ExplainedLine struct {
	Ahead      int64     `json:"ahead"` // tasks before it in line; -1 if the task is missing from the line
	Length     int64     `json:"length"`
	Hold       Hold      `json:"hold,omitempty"`
	Running    int64     `json:"running"` // running tasks of this queue
	MaxRunning int64     `json:"max_running,omitempty"`
	MaxLength  int64     `json:"max_length,omitempty"`
	FreeAt     time.Time `json:"free_at,omitzero"` // with HoldThrottled: when the rate allows the next task
	Workers    int64     `json:"workers"`          // live workers, whatever queues they serve
}

// Hold is the reason why a queue hands out no tasks. The list is closed.
type Hold string

// The holds of a queue. If several apply, the first of this list is reported.
const (
	HoldPaused    Hold = "paused"
	HoldFull      Hold = "full"      // the maximum number of tasks is running
	HoldThrottled Hold = "throttled" // the rate is used up
)

// ExplainedRun describes the attempt that runs.
type ExplainedRun struct {
	Worker  string `json:"worker"`
	Attempt int    `json:"attempt"`
	Epoch   int64  `json:"epoch"`
	// LeaseEnds is the instant at which the task is given back if its worker sends no more
	// heartbeats. Each heartbeat moves it, so it is not a bound.
	LeaseEnds    time.Time `json:"lease_ends_at,omitzero"`
	CancelledAt  time.Time `json:"cancel_at,omitzero"`
	CancelReason string    `json:"cancel_reason,omitempty"`
}

// ExplainedWait describes the current wait of an agent.
type ExplainedWait struct {
	Mode    queue.Mode `json:"wait_mode"`
	Tasks   []string   `json:"wait_for_tasks"` // ids of all members, in the order of the call
	Label   string     `json:"label,omitempty"`
	Because string     `json:"wait_reason,omitempty"` // the reason that the agent gave for its wait
	Entry   int64      `json:"entry"`
	Members int        `json:"members"`
	Need    int        `json:"need"` // members that must complete (modes any_ok and n_of_m) or end (other modes)
	OK      int        `json:"ok"`   // members that ended and count as ok
	Bad     int        `json:"bad"`  // members that ended and count as bad; the mask can leave others out of both
	Settled int        `json:"settled"`
	Left    int        `json:"left"` // members that have not ended
	Limit   time.Time  `json:"wait_deadline_at,omitzero"`
	// LimitAfter is the length of a limit that begins when the first member ends. It is 0 once the
	// limit has begun.
	LimitAfter duration.Duration `json:"limit_ms,omitzero"`
	Reason     string            `json:"reason,omitempty"` // with WhyWaking: satisfied, impossible or timed_out
}

// ExplainedLag is the delay with which recent timeouts in the task's partition were written, counted
// from the instant that decided them. Expect it on top of a bound, but it is no promise. It covers
// the timeouts among the newest 200 events.
type ExplainedLag struct {
	P99 duration.Duration `json:"p99_ms"`
	Max duration.Duration `json:"max_ms"`
	Of  int               `json:"count"` // number of timeouts
}

// ExplainedEnd describes the end of a task. The end may be decided and not written yet.
type ExplainedEnd struct {
	Status      queue.Status      `json:"status"`
	At          time.Time         `json:"completed_at"`
	Reason      queue.Reason      `json:"reason,omitempty"`
	TimeoutType queue.TimeoutType `json:"timeout_type,omitempty"`
	Error       string            `json:"error,omitempty"`
	Lag         duration.Duration `json:"lag_ms,omitzero"`   // of a timeout: from At until it was written
	By          string            `json:"by,omitempty"`      // the owner with which it ended, if that is known
	KeptBy      string            `json:"kept_by,omitempty"` // the owner during whose life the record is kept
	// NeverStarted is set if the task timed out and no worker ever claimed it. The warnings then
	// describe its queue as it is now.
	NeverStarted bool      `json:"never_started,omitempty"`
	Goes         time.Time `json:"removed_at,omitzero"` // when the record is removed
}

// WarningWord names the kind of a warning. The list is closed.
type WarningWord string

// The kinds of warnings.
const (
	WarnNoBound   WarningWord = "no_bound"   // this can wait without limit; Tasks are the members that have no bound
	WarnPaused    WarningWord = "paused"     // the queue is paused
	WarnFull      WarningWord = "full"       // the queue runs its maximum number of tasks
	WarnThrottled WarningWord = "throttled"  // the rate of the queue is used up
	WarnNoWorker  WarningWord = "no_worker"  // no worker lives in the partition
	WarnUnserved  WarningWord = "unserved"   // no live worker serves the queue
	WarnNoHandler WarningWord = "no_handler" // no live worker that serves the queue handles the kind
	WarnDiverged  WarningWord = "diverged"   // the code of its last worker has changed and cannot continue the agent
	WarnNoReaper  WarningWord = "no_reaper"  // no reaper runs: a due task waits for the next call that touches it
	WarnLeaseOver WarningWord = "lease_over" // the lease of its worker has expired
	WarnNotBegun  WarningWord = "not_begun"  // the limit of the wait begins with the first end, and no member has a bound
	WarnBroken    WarningWord = "broken"     // the records of Tasks are missing or cannot be worked with
	WarnLost      WarningWord = "lost"       // an index that should lead to the task does not have it: see Audit
)

// Warning is a problem that an operator should look into.
type Warning struct {
	Word  WarningWord `json:"word"`
	Text  string      `json:"text"`
	Tasks []string    `json:"tasks,omitempty"` // at most ten
	More  int         `json:"more,omitempty"`  // number of further tasks
}

// Explain explains why a task is in its current state, and when it leaves that state at the latest.
// It changes nothing. If there is no such task, it returns [refusal.ErrNotFound]; if the id is not
// valid, [refusal.ErrInvalid].
//
// A bound is computed from instants that never move: deadlines, own and inherited; the limits that
// are running for the line, the attempt and the wait; the patience of a wait; a grace that has
// begun; the time of a timer. A limit of a wait that begins with the first end is counted from the
// earliest bound of a member, because the first end cannot come later.
//
// So a bound is never too early, whatever happens after Explain has returned, except for the time
// that a reaper needs to write a change. For example, a grace that follows a patience begins when
// the end of the patience is written, and a limit that begins with the first end begins with the end
// that is written first.
//
// A bound does not use
//
//   - leases, because each heartbeat moves them;
//   - the limits of line and attempt, in EndsBy and for members of a wait, because a claim ends the first, and a new attempt has a new limit;
//   - a limit that begins with the first end, if no member has a bound;
//   - the nth end, if a wait needs n members that complete, because the end may be a failure. The bound is then the instant after which no combination of outcomes leaves the wait open.
//
// Explain makes one call to Redis, one more for a PENDING task, which reads the descriptions of up
// to 1,000 workers, and one more for each 200 members of a wait that have not ended. Members that
// end between two calls count as ended at the time of the last call. If the wait ends or its limit
// begins meanwhile, Explain begins again. It returns an error after five such changes.
func Explain(ctx context.Context, q *queue.Queue, id string) (*Explanation, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("explain", "", err)
	}
	p, err := names.PartitionIn(id, q.Partitions())
	if err != nil {
		return nil, refusal.Failed("explain", id, err)
	}
	seen, err := observe(ctx, q, p, id)
	if err != nil {
		return nil, refusal.Failed("explain", id, err)
	}
	if len(seen.record) == 0 && seen.facts["unreadable"] == "" && seen.facts["broken"] == "" {
		return nil, refusal.Failed("explain", id, refusal.ErrNotFound)
	}
	if seen.wantsWorker() {
		if seen.crew, err = readCrew(ctx, q, p, time.UnixMilli(seen.now)); err != nil {
			return nil, refusal.Failed("explain", id, err)
		}
	}
	return seen.explain(), nil
}

// MarshalJSON encodes the fields, and the result of String as "sentence". Instants are in ms since 1970, and
// spans are in ms.
func (e Explanation) MarshalJSON() ([]byte, error) {
	type plain Explanation
	return jsonx.Encode(struct {
		plain
		Sentence string `json:"sentence"`
	}{plain(e), e.String()}), nil
}
