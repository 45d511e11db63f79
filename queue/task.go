package queue

import (
	"encoding/json"
	"hash/crc32"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Task is what a producer hands over. Only Kind is required.
type Task struct {
	// Kind names the handler.
	Kind string
	// Queue is the line that it stands in. Defaults to "default".
	Queue string
	// ID is for children alone: the owner's id, a dot, a counter or a name. A root
	// task's id is made for it.
	ID string
	// Priority is 0 to 3; 3 goes first.
	Priority int
	// Payload is opaque.
	Payload []byte
	// Headers travel with the task, for traces and tenants.
	Headers map[string]string

	// Timeout is from now to the task's end, its time in line included. One of
	// Timeout and Deadline, or neither: then nothing bounds the task.
	Timeout  time.Duration
	Deadline time.Time
	// DefaultTimeout is the Timeout of a task whose producer and kind say nothing of one: an
	// owner's word for its children.
	DefaultTimeout time.Duration
	// Budget is for children alone: the part of the time that their owner has left, 0.5 for
	// half of it, after which they end if they have no earlier end of their own. The
	// owner needs a deadline, its own or an inherited one.
	Budget float64
	// OnDeadline is what the end of its time means for a task that has children: see
	// docs/agents.md. It is DeadlineCancelAll (the default) or DeadlineFail.
	OnDeadline OnDeadline
	// QueueTimeout is how long it may stand in line before it is FAILED.
	QueueTimeout time.Duration
	// AttemptTimeout is how long one run of the handler may take.
	AttemptTimeout time.Duration
	// OnTimeout is what an attempt that took longer than AttemptTimeout comes to:
	// OnTimeoutFail (the default) or OnTimeoutRetry, which needs MaxRetries. The end of
	// Timeout is final whatever it says.
	OnTimeout OnTimeout
	// WarnAt is the part of its time, 0.8 for 80 %, after which one event deadline_near
	// is told, and worker.DeadlineNear tells a running handler. 0: none.
	WarnAt float64
	// CancelGrace is how long a running handler may go on once its task is cancelled,
	// to clean up: until it returns, the task keeps its claim. What it returns is
	// dropped. 0: a cancelled task ends at once.
	CancelGrace time.Duration
	// TimeoutGrace is how long before the task's deadline, and before the end of its AttemptTimeout, the
	// context of its handler ends, so that the handler can clean up in time: half of the time that is left
	// when it starts, at the most. A result that it returns in its grace counts. An error counts as that timeout.
	TimeoutGrace time.Duration

	// MaxRetries is how often a failed attempt is repeated: N retries are N+1 attempts.
	// NoRetries says 0 where the kind's default is more.
	MaxRetries int
	// Backoff is the time between attempts. A retry that could not start before the
	// task's end is not made.
	Backoff Backoff
	// Retry is an expression that decides, in place of the class of the failure and of
	// OnTimeout, whether a failed attempt is repeated, as long as MaxRetries allows it. It
	// is a boolean in the language of github.com/expr-lang/expr over the task's own
	// attempt, tasks.<kind>.phase ("Error", "Failed" or "Timeout"), .code, .msg and
	// .outputs.parameters.<name>:
	//
	//	tasks.render.phase == "Timeout" || tasks.render.code in [75, 111]
	//
	// One that cannot be read is refused. One that fails on an attempt repeats nothing,
	// and Record.RetryError says why.
	Retry string

	// Hooks are tasks to enqueue when this one has ended.
	Hooks Hooks
	// Promise makes it a task that no worker runs: Resolve or Reject settles it, by its
	// id. Give it a Timeout, or it may wait for ever.
	Promise bool
	// Timer makes it a promise that completes by itself at StartAt, or after Delay.
	Timer bool

	// Delay and StartAt say when it may start at the earliest. One or neither.
	Delay   time.Duration
	StartAt time.Time
	// Retention is how long the record is kept after the end. Defaults to 15 min
	// for COMPLETED, 7 days for FAILED and CANCELLED; at least 1 min.
	Retention time.Duration
	// IdempotencyKey makes the first task with this key the only one, until a day
	// after its end, or as long as IdempotencyScope says.
	IdempotencyKey string
	// IdempotencyScope is how long the key holds. ForWindow needs IdempotencyWindow,
	// which counts from now and may not end before the deadline.
	IdempotencyScope  Scope
	IdempotencyWindow time.Duration
	// RetryOf is the ended task that this one is run in the place of: see Queue.Retry.
	RetryOf string
}

// None says that there is to be no such time, where a default of the kind would give
// one. It can be the Timeout, QueueTimeout, AttemptTimeout, CancelGrace, TimeoutGrace or Retention
// of a Task.
const None time.Duration = math.MinInt64

// NoRetries says that there are none, where a default of the kind would give some.
const NoRetries = -1

// Scope is how long an idempotency key holds.
type Scope string

// The default, "", holds until a day after the task's end, or as long as its record is
// kept if that is longer.
const (
	UntilStarted  Scope = "started"  // until a worker first takes the task
	UntilFinished Scope = "finished" // until the task's end
	ForWindow     Scope = "window"   // for IdempotencyWindow from now
)

// Receipt says what became of a task that was handed over.
type Receipt struct {
	ID       string
	Deadline time.Time // zero: none
	New      bool      // false: the idempotency key was known, or a child of this ID was there; ID is the first task's
	Err      error     // in lists: why this one was refused; the others are not affected
}

// maxSpan is 2^53 ms: the greatest instant that a score holds exactly.
const maxSpan = 1 << 53

// Check refuses what can be seen to be wrong without a look at Redis, as Enqueue does.
func (t *Task) Check(maxBytes int) error {
	if t == nil {
		return refusal.Invalid("task", "is nil")
	}
	return t.check(maxBytes)
}

// check refuses what can be seen to be wrong without a look at Redis.
func (t *Task) check(maxBytes int) error {
	if !names.Valid(t.Kind, "._-:/") {
		return refusal.Invalid("kind", "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit", refusal.Clip(t.Kind))
	}
	if t.Queue != "" && !names.Valid(t.Queue, "._-") {
		return refusal.Invalid("queue", "%q must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit", refusal.Clip(t.Queue))
	}
	if t.Priority < 0 || t.Priority > 3 {
		return refusal.Invalid("priority", "%d must be 0, 1, 2 or 3 (3 goes first)", t.Priority)
	}
	if err := t.checkTimes(); err != nil {
		return err
	}
	if len(t.Payload) > maxBytes {
		return refusal.Invalid("payload", "has %d bytes, the limit is %d: store it elsewhere and send a reference, or raise Config.MaxBytes", len(t.Payload), maxBytes)
	}
	if err := t.checkPolicy(); err != nil {
		return err
	}
	size := 0
	for name, value := range t.Headers {
		size += len(name) + len(value)
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return refusal.Invalid("headers", "%q is not UTF-8: put bytes into the payload", refusal.Clip(name))
		}
	}
	if size > maxBytes {
		return refusal.Invalid("headers", "have %d bytes, the limit is %d", size, maxBytes)
	}
	if err := t.checkRole(); err != nil {
		return err
	}
	if err := t.Hooks.check(); err != nil {
		return err
	}
	return t.checkKey()
}

// checkRole refuses what means nothing for a task that no worker runs.
func (t *Task) checkRole() error {
	switch {
	case !t.Promise && !t.Timer:
		return nil
	case t.Promise && t.Timer:
		return refusal.Invalid("timer", "is a promise already: leave Promise out")
	case t.QueueTimeout > 0 || t.AttemptTimeout > 0 || t.CancelGrace > 0 || t.TimeoutGrace > 0 || t.OnTimeout != "" || t.MaxRetries > 0 || t.Retry != "" ||
		t.Backoff != (Backoff{}) || t.Priority != 0:
		return refusal.Invalid("promise", "is run by no worker, so that priority, queue and attempt timeout, grace and retries mean nothing for it: leave them out")
	case t.Timer && t.Delay == 0 && t.StartAt.IsZero():
		return refusal.Invalid("timer", "needs Delay or StartAt, the time at which it completes")
	case t.Promise && (t.Delay != 0 || !t.StartAt.IsZero()):
		return refusal.Invalid("promise", "may be settled at any time: leave Delay and StartAt out, or make it a Timer")
	}
	return nil
}

func (t *Task) checkKey() error {
	if len(t.IdempotencyKey) > 512 {
		return refusal.Invalid("idempotency key", "has %d bytes, the limit is 512: hash it", len(t.IdempotencyKey))
	}
	switch t.IdempotencyScope {
	case "", UntilStarted, UntilFinished, ForWindow:
	default:
		return refusal.Invalid("idempotency scope", "%q must be UntilStarted, UntilFinished, ForWindow, or nothing for a day past the end", refusal.Clip(string(t.IdempotencyScope)))
	}
	switch {
	case t.IdempotencyKey == "" && (t.IdempotencyScope != "" || t.IdempotencyWindow != 0):
		return refusal.Invalid("idempotency scope", "needs an idempotency key whose scope it is")
	case (t.IdempotencyScope == ForWindow) != (t.IdempotencyWindow != 0):
		return refusal.Invalid("idempotency window", "goes with IdempotencyScope ForWindow, and that with it")
	case t.IdempotencyWindow != 0 && t.Timeout > t.IdempotencyWindow:
		return refusal.Invalid("idempotency window", "%v ends before the timeout, %v, so that a second task could start beside the first: make it longer", t.IdempotencyWindow, t.Timeout)
	}
	if t.RetryOf != "" {
		if _, err := PartitionOf(t.RetryOf); err != nil {
			return refusal.Invalid("retry of", "%q is not a task's id", refusal.Clip(t.RetryOf))
		}
	}
	return nil
}

func (t *Task) checkTimes() error {
	for _, span := range []struct {
		field string
		d     time.Duration
	}{
		{"timeout", t.Timeout}, {"default timeout", t.DefaultTimeout}, {"queue timeout", t.QueueTimeout}, {"attempt timeout", t.AttemptTimeout},
		{"cancel grace", t.CancelGrace}, {"timeout grace", t.TimeoutGrace}, {"retention", t.Retention},
		{"delay", t.Delay}, {"idempotency window", t.IdempotencyWindow}, {"back-off", t.Backoff.Delay}, {"longest back-off", t.Backoff.Max},
	} {
		if err := checkSpan(span.field, span.d); err != nil {
			return err
		}
	}
	for field, d := range map[string]time.Duration{"delay": t.Delay, "default timeout": t.DefaultTimeout, "idempotency window": t.IdempotencyWindow,
		"back-off": t.Backoff.Delay, "longest back-off": t.Backoff.Max} {
		if d == None {
			return refusal.Invalid(field, "cannot be None: leave it out")
		}
	}
	if t.Timeout > 0 && !t.Deadline.IsZero() {
		return refusal.Invalid("deadline", "give a timeout or a deadline, not both")
	}
	if t.Delay != 0 && !t.StartAt.IsZero() {
		return refusal.Invalid("start", "give a delay or a start time, not both")
	}
	for _, instant := range []struct {
		field string
		at    time.Time
	}{{"deadline", t.Deadline}, {"start", t.StartAt}} {
		// Not by UnixMilli, which runs over in the far future.
		if at := instant.at; !at.IsZero() && (at.Before(time.UnixMilli(1)) || at.After(time.UnixMilli(maxSpan))) {
			return refusal.Invalid(instant.field, "must be between 1970 and 2^53 ms after it")
		}
	}
	return nil
}

func checkSpan(field string, d time.Duration) error {
	if d < 0 && d != None {
		return refusal.Invalid(field, "%v must be positive; leave it out for none", d)
	}
	if d > 0 && d < time.Millisecond {
		return refusal.Invalid(field, "%v is under 1ms, the finest that is kept", d)
	}
	return nil
}

// addSpan adds a time in ms, "none" for None, nothing for 0.
func addSpan(add func(string, any), name string, d time.Duration) {
	switch {
	case d == None:
		add(name, "none")
	case d > 0:
		add(name, d.Milliseconds())
	}
}

// fields appends what a task has beside its id and payload, as the calls want it: a
// count, then names and values; more are some of the call.
func (t *Task) fields(args []any, more ...any) []any {
	at := len(args)
	args = append(append(args, 0, "kind", t.Kind), more...)
	add := func(name string, value any) { args = append(args, name, value) }
	if t.Queue != "" {
		add("queue", t.Queue)
	}
	if len(t.Headers) > 0 {
		headers, _ := json.Marshal(t.Headers) // a map of strings always can
		add("headers", headers)
	}
	if t.Priority != 0 {
		add("priority", t.Priority)
	}
	t.policyFields(add)
	addSpan(add, "default_timeout_ms", t.DefaultTimeout)
	if t.Budget != 0 {
		add("budget_percent", int(math.Round(t.Budget*100)))
	}
	addSpan(add, "delay_ms", t.Delay)
	if !t.Deadline.IsZero() {
		add("deadline_at", t.Deadline.UnixMilli())
	}
	if !t.StartAt.IsZero() {
		add("available_at", t.StartAt.UnixMilli())
	}
	if t.IdempotencyKey != "" {
		add("idempotency_key", t.IdempotencyKey)
	}
	if t.IdempotencyScope != "" {
		add("idempotency_scope", string(t.IdempotencyScope))
	}
	addSpan(add, "idempotency_window_ms", t.IdempotencyWindow)
	if t.RetryOf != "" {
		add("retry_of", t.RetryOf)
	}
	switch {
	case t.Timer:
		add("role", "timer")
	case t.Promise:
		add("role", "promise")
	}
	t.Hooks.fields(add)
	args[at] = (len(args) - at - 1) / 2
	return args
}

// size is about what the task takes on the wire.
func (t *Task) size() int {
	n := 200 + len(t.Payload) + len(t.Retry)
	for name, value := range t.Headers {
		n += len(name) + len(value) + 8
	}
	return n
}

// home is the partition of a task that has to have a certain one: a child's is
// its owner's, a key's is given by the key, so that all producers meet there.
func (t *Task) home(partitions int) (int, bool, error) {
	switch {
	case t.ID != "":
		if !strings.Contains(t.ID, ".") {
			return 0, true, refusal.Invalid("id", "%q: only a child is given one (its owner's id, a dot, a name); leave it out", refusal.Clip(t.ID))
		}
		if t.IdempotencyKey != "" {
			return 0, true, refusal.Invalid("idempotency key", "%q: a child's id is its idempotency key; leave one of them out", refusal.Clip(t.IdempotencyKey))
		}
		p, err := names.PartitionIn(t.ID, partitions)
		return p, true, err
	case t.IdempotencyKey != "":
		return int(crc32.ChecksumIEEE([]byte(t.IdempotencyKey)) % uint32(partitions)), true, nil
	}
	return 0, false, nil
}
