package queue

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/internal/expr"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Task is a task to enqueue. Only Kind is required.
type Task struct {
	// Kind names the handler.
	Kind string
	// Queue is the queue that the task is in. Defaults to "default".
	Queue string
	// Name is the caller's own key for a root task, such as "order-17": up to 128 bytes of any text.
	// [Queue.IDOf] returns the id of the task with a name. While the record of a task with this name
	// is stored, whether the task is live or ended, a further task with the same kind, queue and
	// payload is a repeat: it is not stored, and its Receipt is the first one's. A task with other
	// content is refused with [refusal.ErrConflict]. The name is free again when the record is
	// removed after its Retention.
	Name string
	// ID is the id of a child: the owner's id, a dot, and a counter or a name. A root task needs no
	// ID, because Enqueue generates one. If a root task sets it, the form is the partition, a dash,
	// letters and digits. Then the call can be repeated: if a task with this id, kind, queue and
	// payload exists, nothing is stored, and the Receipt is the first task's.
	ID string
	// Priority is 0 to 3. Tasks of priority 3 are claimed first.
	Priority int
	// Payload is the input of the handler. Curfew does not interpret it.
	Payload []byte
	// Headers are stored with the task, for example a trace context or a tenant.
	Headers map[string]string

	// Timeout is the time from now until the task times out. It includes the time in line. Deadline
	// is the instant itself. Set one of them, or neither for a task without a time limit of its own. If
	// it also has no owner, QueueTimeout or AttemptTimeout, nothing bounds it: it waits for a worker, and
	// runs, without limit. A namespace can have a default: Settings.DefaultTimeout.
	Timeout  time.Duration
	Deadline time.Time
	// DefaultTimeout is the Timeout of a task if neither its producer nor its kind sets a Timeout or
	// Deadline. It counts from the earliest start. An owner sets it for its children.
	DefaultTimeout time.Duration
	// Budget is for children only. It limits the child to a fraction of the owner's remaining time:
	// with 0.5 the child times out after half of that time, if it has no earlier deadline. The owner
	// needs a deadline, its own or an inherited one.
	Budget float64
	// OnDeadline selects the end of a task with children whose time is up: DeadlineCancelAll (the
	// default) or DeadlineFail. See docs/explanation/agents.md.
	OnDeadline OnDeadline
	// QueueTimeout limits the time in line. A task that waits longer is FAILED.
	QueueTimeout time.Duration
	// AttemptTimeout limits one run of the handler.
	AttemptTimeout time.Duration
	// OnTimeout selects the effect of the AttemptTimeout: OnTimeoutFail (the default), or
	// OnTimeoutRetry, which needs MaxRetries. A task that reaches its Timeout is FAILED in any case.
	OnTimeout OnTimeout
	// WarnAt is a fraction of the task's time, for example 0.8. After it, one event deadline_near is
	// written, and a running handler is notified through worker.DeadlineNear. 0: no warning.
	WarnAt float64
	// CancelGrace is the time in which a running handler can clean up after its task was cancelled.
	// Until the handler returns, the task keeps its claim. Its result is dropped. 0: a cancelled
	// task ends at once.
	CancelGrace time.Duration
	// TimeoutGrace ends the context of the handler this much earlier than the task's deadline or
	// AttemptTimeout, so that the handler can clean up in time. It is at most half of the time that
	// remains when the handler starts. A result that the handler returns during the grace counts. An
	// error counts as the timeout.
	TimeoutGrace time.Duration

	// MaxRetries is the greatest number of retries: with N retries a task has up to N+1 attempts.
	// NoRetries means 0, even if the kind has a default.
	MaxRetries int
	// Backoff is the time between attempts. Defaults to the back-off of the kind. If the kind has none
	// either, it is 1 s, doubled by each retry up to 10 minutes, less up to 20 percent, and so short
	// that the first ten retries wait at most half of the task's time: with five retries and a Timeout
	// of 500 ms, 50 ms. (For a node of a flow it is 0, because the definition has the back-off.) If the
	// next attempt could not start before the task's deadline, there is no retry.
	Backoff Backoff
	// Retry is an expression that decides whether a failed attempt is retried, within MaxRetries.
	// It replaces the class of the failure. An attempt that takes too long is retried as OnTimeout
	// says or, if that is not set, as the expression says. It is a boolean expression in the
	// language of github.com/expr-lang/expr. It can read the task's own attempt:
	// tasks.<kind>.phase ("Error", "Failed" or "Timeout"), .code, .msg and
	// .outputs.parameters.<name>:
	//
	//	tasks.render.phase == "Timeout" || tasks.render.code in [75, 111]
	//
	// A task with an expression that cannot be compiled is refused. If the evaluation fails for an
	// attempt, there is no retry, and Record.RetryError says why.
	Retry string

	// ResultType is the JSON that the task can complete with, for example "bool" or
	// "{approved: bool, note: string?}"; [ResultTypeOf] makes it of a Go type, and
	// docs/reference/protocol.md has all types. Another result is refused, of whoever resolves a
	// Promise or completes the task, and changes nothing. "": any bytes.
	ResultType string

	// Hooks are tasks to enqueue when this task has ended.
	Hooks Hooks
	// Promise makes this a task that no worker runs. Resolve or Reject settles it by its id. Set
	// a Timeout, otherwise it can wait without limit.
	Promise bool
	// Timer makes this a promise that completes by itself at StartAt, or after Delay.
	Timer bool

	// Delay or StartAt sets the earliest time at which the task can start. Set one of them or
	// neither.
	Delay   time.Duration
	StartAt time.Time
	// Retention is the time for which the record is kept after the task's end, at least 1 min.
	// Defaults to 15 min for COMPLETED, and to 7 days for FAILED and CANCELLED.
	Retention time.Duration
	// IdempotencyKey prevents duplicates: a further task with the same key is a repeat, which is not
	// stored. The key holds until a day after the task's end, unless IdempotencyScope is set.
	IdempotencyKey string
	// IdempotencyScope selects how long the key holds. ForWindow needs IdempotencyWindow, which
	// counts from now and cannot end before the deadline.
	IdempotencyScope  Scope
	IdempotencyWindow time.Duration
	// Node identifies the node of a flow that the task runs. Package flow sets it.
	Node Node
	// RetryOf is the id of the ended task that this task runs again: see Queue.Retry.
	RetryOf string
}

// Node is a node of a definition: see package flow. A task that belongs to no flow has the zero Node.
type Node struct {
	Definition string `json:"definition"`
	Version    string `json:"version"`
	Name       string `json:"name"`
}

// String returns the parts with a space between them, as they are stored.
func (n Node) String() string {
	if n == (Node{}) {
		return ""
	}
	return n.Definition + " " + n.Version + " " + n.Name
}

// readNode reads a stored node.
func readNode(s string) Node {
	definition, rest, _ := strings.Cut(s, " ")
	version, name, _ := strings.Cut(rest, " ")
	return Node{definition, version, name}
}

var nodeForm = regexp.MustCompile(`^[A-Za-z][\w-]{0,63} [0-9A-Za-z][\w.-]{0,63} [0-9A-Za-z][\w.-]{0,127}$`)

// None disables a time limit, even if the kind has a default. It can be the Timeout, QueueTimeout,
// AttemptTimeout, CancelGrace, TimeoutGrace or Retention of a Task, or the Delay of its Backoff.
// NoHook is the same for hooks.
const None time.Duration = math.MinInt64

// NoRetries disables retries, even if the kind has a default.
const NoRetries = -1

// Scope selects how long an idempotency key holds.
type Scope string

// With the default, "", the key holds until a day after the task's end, or as long as its record
// is kept if that is longer.
const (
	UntilStarted  Scope = "started"  // until a worker first takes the task
	UntilFinished Scope = "finished" // until the task's end
	ForWindow     Scope = "window"   // for IdempotencyWindow from now
)

// Receipt is the result of enqueuing a task.
type Receipt struct {
	ID       string    `json:"id"`
	Deadline time.Time `json:"deadline_at,omitzero"` // zero: none
	New      bool      `json:"new"`                  // false: a task with this name, idempotency key or ID exists, and ID is its id
	Err      error     `json:"-"`                    // set by EnqueueAll: the error of this task; other tasks are not affected
}

// MarshalJSON encodes the receipt with the text of its error.
func (r Receipt) MarshalJSON() ([]byte, error) {
	type plain Receipt // without this method
	line := struct {
		plain
		Error string `json:"error,omitempty"`
	}{plain: plain(r)}
	if r.Err != nil {
		line.Error = r.Err.Error()
	}
	return json.Marshal(line)
}

// maxSpan is 2^53 ms, the greatest instant that a score of a sorted set holds exactly.
const maxSpan = 1 << 53

// Check makes the checks of Enqueue that need no call to Redis. maxBytes is the limit of
// Config.MaxBytes. It returns [refusal.ErrInvalid].
func (t *Task) Check(maxBytes int) error {
	if t == nil {
		return refusal.Invalid("task", "is nil")
	}
	return t.check(maxBytes)
}

// check makes all checks of a task that need no call to Redis.
func (t *Task) check(maxBytes int) error {
	if err := checkKind("kind", t.Kind); err != nil {
		return err
	}
	if t.Queue != "" {
		if err := checkQueue("queue", t.Queue); err != nil {
			return err
		}
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
			return refusal.Invalid("headers", "%q is not UTF-8: put binary data into the payload", refusal.Clip(name))
		}
	}
	if size > maxBytes {
		return refusal.Invalid("headers", "have %d bytes, the limit is %d", size, maxBytes)
	}
	if err := t.checkRole(); err != nil {
		return err
	}
	for _, hook := range t.Hooks.list() {
		if hook.Hook == (Hook{}) {
			continue
		}
		if err := checkKind("kind of hook "+hook.event, hook.Kind); err != nil {
			return err
		}
		if hook.Kind == NoHook.Kind && hook.Queue != "" {
			return refusal.Invalid("queue of hook "+hook.event, "%q cannot be given: the kind none is no hook", refusal.Clip(hook.Queue))
		}
		if hook.Queue != "" {
			if err := checkQueue("queue of hook "+hook.event, hook.Queue); err != nil {
				return err
			}
		}
	}
	if t.Node != (Node{}) && !nodeForm.MatchString(t.Node.String()) {
		return refusal.Invalid("node", "%q must be the id of a definition, its version and the name of a node: package flow sets it", refusal.Clip(t.Node.String()))
	}
	return t.checkKey()
}

// checkRole refuses settings for workers, such as retries, on a promise or a timer, because no
// worker runs these.
func (t *Task) checkRole() error {
	switch {
	case !t.Promise && !t.Timer:
		return nil
	case t.Promise && t.Timer:
		return refusal.Invalid("timer", "is a promise already: leave Promise out")
	case t.QueueTimeout > 0 || t.AttemptTimeout > 0 || t.CancelGrace > 0 || t.TimeoutGrace > 0 || t.OnTimeout != "" || t.MaxRetries > 0 || t.Retry != "" ||
		t.Backoff != (Backoff{}) || t.Priority != 0:
		return refusal.Invalid("promise", "is not run by a worker: leave out priority, queue and attempt timeout, grace and retries")
	case t.Timer && t.Delay == 0 && t.StartAt.IsZero():
		return refusal.Invalid("timer", "needs Delay or StartAt, the time at which it completes")
	case t.Promise && (t.Delay != 0 || !t.StartAt.IsZero()):
		return refusal.Invalid("promise", "can be settled at any time: leave Delay and StartAt out, or make it a Timer")
	}
	return nil
}

func (t *Task) checkKey() error {
	if t.Name != "" {
		if err := t.checkName(); err != nil {
			return err
		}
	}
	if len(t.IdempotencyKey) > 512 {
		return refusal.Invalid("idempotency key", "has %d bytes, the limit is 512: hash it", len(t.IdempotencyKey))
	}
	switch t.IdempotencyScope {
	case "", UntilStarted, UntilFinished, ForWindow:
	default:
		return refusal.Invalid("idempotency scope", "%q must be UntilStarted, UntilFinished, ForWindow, or empty for a day after the end", refusal.Clip(string(t.IdempotencyScope)))
	}
	switch {
	case t.IdempotencyKey == "" && (t.IdempotencyScope != "" || t.IdempotencyWindow != 0):
		return refusal.Invalid("idempotency scope", "needs an idempotency key: set IdempotencyKey, or leave scope and window out")
	case t.IdempotencyWindow != 0 && t.IdempotencyScope != ForWindow:
		return refusal.Invalid("idempotency window", "needs IdempotencyScope ForWindow")
	case t.IdempotencyWindow == 0 && t.IdempotencyScope == ForWindow:
		return refusal.Invalid("idempotency window", "is required for IdempotencyScope ForWindow")
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

func (t *Task) checkName() error {
	switch _, err := names.Encode(t.Name); {
	case err != nil:
		return err
	case t.ID != "":
		return refusal.Invalid("name", "%q cannot be given for a child: its id has its name", refusal.Clip(t.Name))
	case t.IdempotencyKey != "":
		return refusal.Invalid("idempotency key", "%q cannot be given together with a name: the name is the key", refusal.Clip(t.IdempotencyKey))
	}
	return nil
}

func (t *Task) checkTimes() error {
	for _, span := range []struct {
		field     string
		d         time.Duration
		mayBeNone bool
	}{
		{"timeout", t.Timeout, true}, {"default timeout", t.DefaultTimeout, false}, {"queue timeout", t.QueueTimeout, true},
		{"attempt timeout", t.AttemptTimeout, true}, {"cancel grace", t.CancelGrace, true}, {"timeout grace", t.TimeoutGrace, true},
		{"retention", t.Retention, true}, {"delay", t.Delay, false}, {"idempotency window", t.IdempotencyWindow, false},
		{"back-off", t.Backoff.Delay, true}, {"longest back-off", t.Backoff.Max, false},
	} {
		switch d := span.d; {
		case d == None && !span.mayBeNone:
			return refusal.Invalid(span.field, "cannot be None: leave it out")
		case d < 0 && d != None:
			return refusal.Invalid(span.field, "%v must be positive; leave it out for none", d)
		case d > 0 && d < time.Millisecond:
			return refusal.Invalid(span.field, "%v is under 1ms, the shortest time that is kept", d)
		}
	}
	if t.Timeout > 0 && !t.Deadline.IsZero() {
		return refusal.Invalid("deadline", "cannot be given together with a timeout")
	}
	if t.Delay != 0 && !t.StartAt.IsZero() {
		return refusal.Invalid("start", "cannot be given together with a delay")
	}
	for _, instant := range []struct {
		field string
		at    time.Time
	}{{"deadline", t.Deadline}, {"start", t.StartAt}} {
		// UnixMilli is not used, since it overflows in the far future.
		if at := instant.at; !at.IsZero() && (at.Before(time.UnixMilli(1)) || at.After(time.UnixMilli(maxSpan))) {
			return refusal.Invalid(instant.field, "must be between 1970 and 2^53 ms after it")
		}
	}
	return nil
}

// addSpan adds a time in ms, or "none" for None. For 0 it adds nothing.
func addSpan(add func(string, any), name string, d time.Duration) {
	switch {
	case d == None:
		add(name, "none")
	case d > 0:
		add(name, d.Milliseconds())
	}
}

// fields appends all fields of a task except id and payload to the arguments of a call: their
// number, then names and values. more holds further names and values.
func (t *Task) fields(args []any, extra ...any) []any {
	at := len(args)
	args = append(append(args, 0, "kind", t.Kind), extra...)
	add := func(name string, value any) { args = append(args, name, value) }
	if t.Queue != "" {
		add("queue", t.Queue)
	}
	if len(t.Headers) > 0 {
		headers, _ := json.Marshal(t.Headers) // never fails for a map of strings
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
	if t.Node != (Node{}) {
		add("node", t.Node.String())
	}
	switch {
	case t.Timer:
		add("role", "timer")
	case t.Promise:
		add("role", "promise")
	}
	args[at] = (len(args) - at - 1) / 2
	return args
}

// size returns the approximate number of bytes that the task takes in a call.
func (t *Task) size() int {
	n := 200 + len(t.Payload) + len(t.Retry)
	for name, value := range t.Headers {
		n += len(name) + len(value) + 8
	}
	return n
}

// fixed reports whether the caller chose the id of the task.
func (t *Task) fixed() bool { return t.ID != "" || t.Name != "" }

// OnTimeout is the effect of an AttemptTimeout.
type OnTimeout string

// The task is FAILED or retried.
const (
	OnTimeoutFail  OnTimeout = "fail"
	OnTimeoutRetry OnTimeout = "retry"
)

// Backoff is the time between a failed attempt and the next one. It is Delay; with Exponential, each
// retry doubles it. It is at most Max, or a day if Max is 0. Jitter is from 0 to 1. It subtracts a
// random part, up to that fraction, so that tasks that failed together are not retried together.
// With a Delay of None, failed attempts are retried at once.
type Backoff struct {
	Delay       time.Duration
	Exponential bool
	Max         time.Duration
	Jitter      float64
}

// OnDeadline is the end of a task with children whose own time is up. Its children time out in both
// cases.
type OnDeadline string

// With DeadlineCancelAll the task has timed out, and waiting callers get a [TaskTimedOutError].
// With DeadlineFail it has failed with the error "Workflow exceeded timeout", and they get a
// [TaskFailedError].
const (
	DeadlineCancelAll OnDeadline = "cancel_all"
	DeadlineFail      OnDeadline = "fail"
)

// checkPolicy refuses invalid limits and retry settings.
func (t *Task) checkPolicy() error {
	if t.MaxRetries < NoRetries {
		return refusal.Invalid("max retries", "%d must not be negative; NoRetries (%d) means no retries", t.MaxRetries, NoRetries)
	}
	switch t.OnTimeout {
	case "", OnTimeoutFail, OnTimeoutRetry:
	default:
		return refusal.Invalid("on timeout", "%q must be fail or retry", refusal.Clip(string(t.OnTimeout)))
	}
	switch t.OnDeadline {
	case "", DeadlineCancelAll, DeadlineFail:
	default:
		return refusal.Invalid("on deadline", "%q must be cancel_all or fail", refusal.Clip(string(t.OnDeadline)))
	}
	if b := t.Budget; b != 0 && !(b >= 0.01 && b <= 1) {
		return refusal.Invalid("budget", "%v must be a fraction of the owner's time, from 0.01 to 1", b)
	}
	if t.Budget != 0 && names.OwnerOf(t.ID) == "" {
		return refusal.Invalid("budget", "is for children only, since it is a fraction of the owner's time: use Timeout")
	}
	if w := t.WarnAt; w != 0 && !(w >= 0.01 && w <= 0.99) {
		return refusal.Invalid("warn at", "%v must be a fraction of the task's time, from 0.01 to 0.99", w)
	}
	if j := t.Backoff.Jitter; !(j >= 0 && j <= 1) {
		return refusal.Invalid("jitter", "%v must be a fraction of the back-off, from 0 to 1", j)
	}
	if b := t.Backoff; b.Delay <= 0 && b != (Backoff{Delay: b.Delay}) {
		return refusal.Invalid("back-off", "needs a Delay")
	}
	if t.Retry == "" {
		return nil
	}
	return expr.CheckRetry(t.Kind, t.Retry)
}

// policyFields adds the fields for which a kind can have defaults: limits, retries, retention,
// hooks.
func (t *Task) policyFields(add func(string, any)) {
	addSpan(add, "timeout_ms", t.Timeout)
	addSpan(add, "queue_timeout_ms", t.QueueTimeout)
	addSpan(add, "attempt_timeout_ms", t.AttemptTimeout)
	addSpan(add, "cancel_grace_ms", t.CancelGrace)
	addSpan(add, "timeout_grace_ms", t.TimeoutGrace)
	addSpan(add, "retention_ms", t.Retention)
	if t.Hooks != (Hooks{}) {
		for _, hook := range t.Hooks.list() {
			switch {
			case hook.Kind == "":
			case hook.Queue == "":
				add("hook_"+hook.event, hook.Kind)
			default:
				add("hook_"+hook.event, hook.Kind+" "+hook.Queue)
			}
		}
	}
	if t.WarnAt != 0 {
		add("warn_percent", int(math.Round(t.WarnAt*100)))
	}
	if t.ResultType != "" {
		add("result_type", t.ResultType)
	}
	if t.OnDeadline != "" {
		add("on_deadline", string(t.OnDeadline))
	}
	if t.MaxRetries != 0 {
		add("max_retries", max(t.MaxRetries, 0))
	}
	if t.Backoff.Delay != 0 {
		t.Backoff.fields(add)
	}
	if t.OnTimeout != "" {
		add("on_timeout", string(t.OnTimeout))
	}
	if t.Retry != "" {
		add("retry_expression", expr.OneLine(t.Retry))
		if t.OnTimeout == "" {
			// Everything that the expression can read about a timeout is known now, so it is evaluated
			// here, once. The script that ends such an attempt is in Lua and cannot evaluate it.
			add("on_timeout", expr.Verdict(t.Kind, t.Retry, expr.TimedOut(t.Kind)))
		}
	}
}

func (b *Backoff) fields(add func(string, any)) {
	if b.Delay == None {
		add("backoff_ms", "none")
		return
	}
	// All fields are set, because the task's back-off replaces the kind's as a whole.
	longest, growth := b.Max, "constant"
	if longest == 0 {
		longest = None
	}
	if b.Exponential {
		growth = "exponential"
	}
	addSpan(add, "backoff_ms", b.Delay)
	addSpan(add, "backoff_max_ms", longest)
	add("backoff", growth)
	add("jitter", int(math.Round(b.Jitter*100)))
}

// Hooks are tasks to enqueue when a task ends. At most one of them is enqueued, by the kind of end.
// A hook is a root task, whose id is the ended task's id followed by ! and the event, as in
// "!success". Its timeout is 5 minutes unless its kind has a default. It has no hooks, even if its
// kind has some. Its payload is the JSON of a [HookPayload].
type Hooks struct {
	OnSuccess, OnFailure, OnTimeout, OnCancel Hook // OnFailure is for timeouts too if there is no OnTimeout
}

// Hook is the kind of a hook, and its queue. Queue defaults to "default".
type Hook struct{ Kind, Queue string }

// NoHook disables a hook, even if the kind has a default. So no hook can be of a kind with the name
// none.
var NoHook = Hook{Kind: "none"}

// HookPayload is the payload of a hook. It describes the task that ended.
type HookPayload struct {
	Event       string      `json:"event"` // success, failure, timeout or cancel
	TaskID      string      `json:"task_id"`
	Kind        string      `json:"kind"`
	Queue       string      `json:"queue"`
	Status      Status      `json:"status"`
	Reason      Reason      `json:"reason,omitempty"`
	TimeoutType TimeoutType `json:"timeout_type,omitempty"`
	Error       string      `json:"error,omitempty"` // its first 4 KiB, with ? for bytes that are not UTF-8
	Code        int         `json:"code,omitempty"`  // exit code of the failed attempt, if the handler set one
	CreatedAt   int64       `json:"created_at"`      // in ms since 1970, like the other instants
	StartedAt   int64       `json:"started_at,omitempty"`
	DeadlineAt  int64       `json:"deadline_at,omitempty"`
	CompletedAt int64       `json:"completed_at"`
}

// eventHook is a hook with the event that enqueues it.
type eventHook struct {
	event string
	Hook
}

func (h *Hooks) list() [4]eventHook {
	return [4]eventHook{{"success", h.OnSuccess}, {"failure", h.OnFailure}, {"timeout", h.OnTimeout}, {"cancel", h.OnCancel}}
}
