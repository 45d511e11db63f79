package inspect

import (
	"context"
	"encoding/json"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Why is a word for why a task is where it is. The list is closed.
type Why string

// Why a task that lives is where it is.
const (
	WhyInLine      Why = "in_line"      // it stands in line
	WhyWoken       Why = "woken"        // its wait is over, and it stands in line to go on
	WhyDelayed     Why = "delayed"      // it may not start yet: its producer, or who gave it back, said when
	WhyBackingOff  Why = "backing_off"  // an attempt failed, and the next one is later
	WhyPromise     Why = "promise"      // nobody has settled it
	WhyTimer       Why = "timer"        // its time has not come
	WhyRunning     Why = "running"      // a worker has it
	WhyCancelling  Why = "cancelling"   // it was cancelled, and its handler has its grace to clean up
	WhyWaiting     Why = "waiting"      // an agent: members of its wait have not ended
	WhyWaking      Why = "waking"       // an agent: its wait is decided, and the rest of it is being written
	WhyAttemptOver Why = "attempt_over" // its attempt is out of time, and a retry is next
	WhyOverdue     Why = "overdue"      // its end is decided, and not written yet
	WhyDoomed      Why = "doomed"       // an owner has ended, and it ends with it: not written yet
	WhyBroken      Why = "broken"       // its record cannot be worked with
)

// Why a task that has ended did.
const (
	WhyCompleted  Why = "completed"
	WhyFailed     Why = "failed"
	WhyTimedOut   Why = "timed_out"
	WhyCancelled  Why = "cancelled"
	WhyOwnerEnded Why = "owner_ended" // it ended with its owner: CANCELLED, or FAILED if that timed out
)

// Explanation is why a task is where it is, and by when at the latest that ends. It is
// data, and in JSON it has its String as "sentence".
type Explanation struct {
	ID     string       `json:"id"`
	Kind   string       `json:"kind,omitempty"`
	Queue  string       `json:"queue,omitempty"`
	Status queue.Status `json:"status,omitempty"` // as it is stored
	Why    Why          `json:"why"`
	Now    time.Time    `json:"now"`            // on the clock of Redis; all else is as of then
	Since  time.Time    `json:"since,omitzero"` // when it got there: its attempt, its wait, its end; zero where that is not kept

	// Bound is by when at the latest it is somewhere else: claimed, started, woken,
	// retried or ended.
	Bound Bound `json:"bound"`
	// EndsBy is by when at the latest the task itself has ended, whatever happens.
	EndsBy Bound `json:"ends_by"`

	Retries    int    `json:"retries,omitempty"` // attempts that failed and were, or are to be, repeated
	MaxRetries int    `json:"max_retries,omitempty"`
	LastError  string `json:"last_error,omitempty"` // of the newest of them

	Line *ExplainedLine `json:"line,omitempty"` // of a task in line
	Run  *ExplainedRun  `json:"run,omitempty"`  // of one that runs
	Wait *ExplainedWait `json:"wait,omitempty"` // of an agent that waits
	Lag  *ExplainedLag  `json:"lag,omitempty"`  // of what is bounded, if timeouts have told of it
	End  *ExplainedEnd  `json:"end,omitempty"`  // of one that has ended, or whose end is decided

	Warnings []Warning `json:"warnings,omitempty"`
}

// BoundKind says what kind of instant bounds something. The list is closed.
type BoundKind string

// The kinds of bounds.
const (
	BoundNone     BoundKind = "none"           // nothing does: this can wait for ever
	BoundDeadline BoundKind = "deadline"       // a task's own deadline
	BoundOwner    BoundKind = "owner_deadline" // that of an owner, where it is not later
	BoundQueue    BoundKind = "queue_limit"    // of standing in line: ended, unless it was claimed
	BoundAttempt  BoundKind = "attempt_limit"  // of an attempt, the time that an agent waits in it included
	BoundWait     BoundKind = "wait_limit"     // of a wait; Task is a member if it begins no later than with its end
	BoundPatience BoundKind = "patience"       // of a wait with one member
	BoundGrace    BoundKind = "grace"          // of a task that is cancelled
	BoundTimer    BoundKind = "timer"          // it completes by itself
	BoundStart    BoundKind = "start"          // it gets in line
	BoundDecided  BoundKind = "decided"        // it is over, and a reaper or the next call writes it
	BoundFinal    BoundKind = "final"          // it has ended, which does not change
)

// Bound is by when at the latest something is over. At is the instant that decides, and
// never moves; a reaper then needs a moment to write it.
type Bound struct {
	Kind BoundKind         `json:"kind"`
	At   time.Time         `json:"at,omitzero"`    // zero of BoundNone and BoundFinal
	Left duration.Duration `json:"left,omitzero"`  // from Explanation.Now; 0 if it is over
	Task string            `json:"task,omitempty"` // whose instant that is: the task, an owner, a member of the wait
}

// ExplainedLine is the line that a task stands in.
type ExplainedLine struct {
	Ahead      int64     `json:"ahead"` // how many tasks go before it, in its partition; -1: it is missing there
	Length     int64     `json:"length"`
	Hold       Hold      `json:"hold,omitempty"`
	Running    int64     `json:"running"` // tasks of this queue, in its partition
	MaxRunning int64     `json:"max_running,omitempty"`
	FreeAt     time.Time `json:"free_at,omitzero"` // of HoldThrottled: when the queue may give again
	Workers    int64     `json:"workers"`          // that live, whatever queues they serve
}

// Hold is why a queue gives nothing. The list is closed.
type Hold string

// What holds a queue up. The first that holds is told.
const (
	HoldPaused    Hold = "paused"
	HoldFull      Hold = "full"      // as many run as may
	HoldThrottled Hold = "throttled" // it has given what its rate allows
)

// ExplainedRun is the attempt that runs.
type ExplainedRun struct {
	Worker  string `json:"worker"`
	Attempt int    `json:"attempt"`
	Epoch   int64  `json:"epoch"`
	// LeaseEnds is when the task is given back, if its worker says no more word. Each
	// heartbeat moves it, so it bounds nothing.
	LeaseEnds    time.Time `json:"lease_ends,omitzero"`
	CancelledAt  time.Time `json:"cancelled_at,omitzero"`
	CancelReason string    `json:"cancel_reason,omitempty"`
}

// ExplainedWait is the wait that an agent is at.
type ExplainedWait struct {
	Mode    queue.Mode `json:"wait_mode"`
	Tasks   []string   `json:"wait_for_tasks"` // ids of all members, in the order of the call
	Label   string     `json:"label,omitempty"`
	Because string     `json:"wait_reason,omitempty"` // why the agent waits, in its own words
	Entry   int64      `json:"entry"`
	Members int        `json:"members"`
	Need    int        `json:"need"` // how many it needs: to complete in the modes any_ok and n_of_m, otherwise to end
	OK      int        `json:"ok"`   // ended, and counted as ok
	Bad     int        `json:"bad"`  // ended, and counted as bad; it may have masked others out
	Settled int        `json:"settled"`
	Left    int        `json:"left"` // not ended
	Limit   time.Time  `json:"limit,omitzero"`
	// LimitAfter is a limit that begins with the first end, and has not begun.
	LimitAfter duration.Duration `json:"limit_after,omitzero"`
	Reason     string            `json:"reason,omitempty"` // of WhyWaking: satisfied, impossible or timed_out
}

// ExplainedLag is how late recent timeouts were noticed in the task's partition: from the
// instant that decided until it was written. It is what to expect on top of a bound, and
// no promise. It is made of those among the newest 200 events.
type ExplainedLag struct {
	P99 duration.Duration `json:"p99"`
	Max duration.Duration `json:"max"`
	Of  int               `json:"of"` // how many timeouts
}

// ExplainedEnd is how a task has ended, or will be found to have.
type ExplainedEnd struct {
	Status      queue.Status      `json:"status"`
	At          time.Time         `json:"at"`
	Reason      queue.Reason      `json:"reason,omitempty"`
	TimeoutType queue.TimeoutType `json:"timeout_type,omitempty"`
	Error       string            `json:"error,omitempty"`
	Lag         duration.Duration `json:"lag,omitzero"`      // of a timeout: from At until it was written
	By          string            `json:"by,omitempty"`      // the owner whose end it was, if that is known
	KeptBy      string            `json:"kept_by,omitempty"` // the record is kept as long as this owner's
	Goes        time.Time         `json:"goes,omitzero"`     // when the record does
}

// WarningWord is a word for a warning. The list is closed.
type WarningWord string

// What an Explanation warns of.
const (
	WarnNoBound   WarningWord = "no_bound"   // this can wait for ever; Tasks are what has no deadline
	WarnPaused    WarningWord = "paused"     // the queue is
	WarnFull      WarningWord = "full"       // the queue is
	WarnThrottled WarningWord = "throttled"  // the queue is
	WarnNoWorker  WarningWord = "no_worker"  // none lives in the partition
	WarnNoReaper  WarningWord = "no_reaper"  // none is at work: what is due waits for the next call that meets it
	WarnLeaseOver WarningWord = "lease_over" // its worker seems to be gone
	WarnNotBegun  WarningWord = "not_begun"  // the wait's limit begins with the first end, which nothing bounds
	WarnBroken    WarningWord = "broken"     // the record of Tasks is missing or cannot be worked with
	WarnLost      WarningWord = "lost"       // it stands on no index that anything would find it by: see Audit
)

// Warning is something that somebody should look at.
type Warning struct {
	Word  WarningWord `json:"word"`
	Text  string      `json:"text"`
	Tasks []string    `json:"tasks,omitempty"` // ten at the most
	More  int         `json:"more,omitempty"`  // of them
}

// Explain tells why a task is where it is, and by when at the latest that ends. It changes
// nothing. It returns [refusal.ErrNotFound].
//
// A bound is made of instants that never move: deadlines, own and inherited; the limits of
// its line, its attempt and its wait, while they run; the patience of a wait; a grace that
// has begun; a timer's time. A wait's limit that is to begin with the first end counts from
// the earliest bound of a member, since the first end can only come sooner. So what Explain
// says at one time is never too early at another, whatever happens meanwhile, but for the
// moment that a reaper needs to write it (a grace that follows on a limit of patience begins
// with that moment, and a limit with the end that is written first). It leaves out on purpose
//
//   - leases, which each heartbeat moves;
//   - the limits of line and attempt in EndsBy and for members of a wait: a claim takes
//     the first off, and a task that is given back begins anew;
//   - a wait's limit that begins with the first end, where nothing bounds any member;
//   - where a wait needs n that complete, the nth end: it may be a failure, so what counts
//     is when no ends that are possible leave the wait open.
//
// A wait of more than 200 members is read in several calls. Members that end between them
// count as ended by the last of them.
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
	return seen.explain(), nil
}

// MarshalJSON adds the sentence.
func (e Explanation) MarshalJSON() ([]byte, error) {
	type plain Explanation
	return json.Marshal(struct {
		plain
		Sentence string `json:"sentence"`
	}{plain(e), e.String()})
}
