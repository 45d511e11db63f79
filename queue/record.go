package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Status is the state of a task. The list is closed.
type Status string

// A live task is PENDING, RUNNING or WAITING. The other three are final.
const (
	Pending   Status = "PENDING"
	Running   Status = "RUNNING"
	Waiting   Status = "WAITING"
	Completed Status = "COMPLETED"
	Failed    Status = "FAILED"
	Cancelled Status = "CANCELLED"
)

// Ended reports whether a status is final.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Cancelled }

// Record is a task as it is stored. encoding/json writes it, without Fields, under the names of the record, and reads it
// again: an instant is a text in RFC 3339, a payload or result is in base64. The command and the HTTP API have ms and JSON
// instead.
type Record struct {
	ID             string            `json:"id"`
	Kind           string            `json:"kind"`
	Queue          string            `json:"queue"`
	Status         Status            `json:"status"`
	Priority       int               `json:"priority"`
	Payload        []byte            `json:"payload,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`

	CreatedAt   time.Time `json:"created_at"`
	Deadline    time.Time `json:"deadline_at,omitzero"`  // the task's own; zero: none
	Until       time.Time `json:"until,omitzero"`        // the earliest deadline of the task and its ancestors; zero: none
	AvailableAt time.Time `json:"available_at,omitzero"` // when it can start, if it is PENDING and cannot start yet; otherwise zero
	LimitAt     time.Time `json:"limit_at,omitzero"`     // when its QueueTimeout or AttemptTimeout is over; zero: never
	StartedAt   time.Time `json:"started_at,omitzero"`   // when its newest attempt started

	// Epoch counts claims, from 1. For a task with a name it starts at about CreatedAt in ms, so
	// that a second task of the name has greater epochs. Use it as a fencing token: a store that
	// keeps the greatest epoch that it has seen can refuse writes of an older attempt.
	Epoch       int64  `json:"epoch"`
	Worker      string `json:"worker,omitempty"`
	Retries     int    `json:"retries,omitzero"`
	MaxRetries  int    `json:"max_retries,omitzero"`
	LeaseLosses int    `json:"lease_losses,omitzero"`

	// CompletedAt is the instant of the end. DetectedAt is the instant at which a timeout was
	// recorded. The difference is the delay of its detection.
	CompletedAt time.Time   `json:"completed_at,omitzero"`
	DetectedAt  time.Time   `json:"detected_at,omitzero"`
	Result      []byte      `json:"result,omitempty"`
	Error       string      `json:"error,omitempty"`      // exactly one of Result and Error is set once it has ended
	LastError   string      `json:"last_error,omitempty"` // the error of the newest failed attempt that was retried
	Reason      Reason      `json:"reason,omitzero"`      // "" unless it is FAILED or CANCELLED
	TimedOut    bool        `json:"timed_out,omitzero"`
	TimeoutType TimeoutType `json:"timeout_type,omitzero"` // "" unless it timed out
	RetryState  string      `json:"retry_state,omitempty"` // "deadline": a retry remained, but could not have started before the deadline
	RetryError  string      `json:"retry_error,omitempty"` // why its retry expression could not be evaluated
	RetryOf     string      `json:"retry_of,omitempty"`    // the ended task that Retry ran again as this one
	HookOf      string      `json:"hook_of,omitempty"`     // the ended task whose hook this is
	Node        Node        `json:"node,omitzero"`         // the node of a flow that the task runs; zero: none
	Role        Role        `json:"role,omitzero"`         // "" for a task that workers run
	ResultType  string      `json:"result_type,omitempty"` // the JSON that it can complete with; "" for any bytes
	WarnAt      time.Time   `json:"warn_at,omitzero"`      // when the event deadline_near will be written; zero: never, or it was written already
	CancelAt    time.Time   `json:"cancel_at,omitzero"`    // when it was cancelled, if it still runs in its grace
	GraceEnds   time.Time   `json:"grace_at,omitzero"`     // when that grace ends
	Code        int         `json:"code,omitzero"`         // the exit code, if the handler gave one

	Held   HeldReason `json:"held,omitzero"`    // why it is held and not in line, if it is; otherwise ""
	HeldAt time.Time  `json:"held_at,omitzero"` // since when

	// Progress is the newest progress that a handler reported, and ProgressAt when Redis first
	// received it. Both stay when the task is retried, until a handler reports something else,
	// and when the task ends.
	Progress   string    `json:"progress,omitempty"`
	ProgressAt time.Time `json:"progress_at,omitzero"`

	// Overdue means that the task's time is up but its end is not recorded yet.
	Overdue bool `json:"overdue,omitzero"`
	// Fields holds the fields of the record as they are stored.
	Fields map[string]string `json:"-"`
}

// Phase returns a word for the status that distinguishes a timeout from a failure. Filters and retry
// expressions use it. docs/explanation/lifecycle.md lists the phases.
func (r *Record) Phase() string {
	if r == nil {
		return ""
	}
	switch r.Status {
	case Pending:
		if r.AvailableAt.IsZero() {
			return "Ready"
		}
		return "Created"
	case Running:
		return "Running"
	case Waiting:
		return "Suspended"
	case Completed:
		return "Succeeded"
	case Cancelled:
		return "Cancelled"
	}
	switch {
	case r.TimedOut:
		return "Timeout"
	case r.Reason == ReasonFailed:
		return "Failed"
	}
	return "Error"
}

// Get reads a task. It returns [refusal.ErrNotFound] if there is no such task. Get changes
// nothing: a task whose time is up is returned as it is stored, with Overdue set.
func (q *Queue) Get(ctx context.Context, id string) (*Record, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("get", "", err)
	}
	records, err := q.GetAll(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	if records[0] == nil {
		return nil, refusal.Failed("get", id, refusal.ErrNotFound)
	}
	return records[0], nil
}

// GetAll reads tasks, up to 500 in a round trip. The records are in the order of the list. A
// task that does not exist is nil.
func (q *Queue) GetAll(ctx context.Context, list []string) ([]*Record, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("get all", "", err)
	}
	records := make([]*Record, len(list))
	err := q.eachPartition(list, func(p int, _ []any, places []int) error {
		ids := make([]string, len(places))
		for i, place := range places {
			ids[i] = list[place]
		}
		for len(ids) > 0 {
			// A reply is bounded in bytes, so it can hold only the first records.
			page, _, err := q.GetSome(ctx, p, ids)
			if err != nil {
				return err
			}
			for i, r := range page {
				records[places[i]] = r
			}
			ids, places = ids[len(page):], places[len(page):]
		}
		return nil
	})
	if err != nil {
		return nil, refusal.Failed("get", "", err)
	}
	return records, nil
}

// GetSome reads the first tasks of a list of one partition in one call. It returns at least one
// record, and as many as fit into a reply of about 4 MiB. A task that does not exist is nil. The
// instant is the time of the read, by the clock of Redis. Without ids GetSome returns only the
// instant.
func (q *Queue) GetSome(ctx context.Context, p int, ids []string) ([]*Record, time.Time, error) {
	if err := q.ready(ctx); err != nil {
		return nil, time.Time{}, refusal.Failed("get some", "", err)
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	reply, err := q.engine.Call(ctx, p, "read", args...)
	answers, err := engine.List(reply, err, min(1+len(ids), 2))
	if err != nil {
		return nil, time.Time{}, err
	}
	now, answers := engine.Instant(answers[0]), answers[1:]
	if len(answers) > len(ids) {
		return nil, time.Time{}, fmt.Errorf("%d answers for %d tasks", len(answers), len(ids))
	}
	records := make([]*Record, len(answers))
	for i := range answers {
		if records[i], err = ReadRecord(ids[i], answers[i]); err != nil {
			return nil, time.Time{}, err
		}
	}
	return records, now, nil
}

// ReadRecord reads the answer of lua/call/read.lua for one task: overdue, payload, then the fields. It returns nil
// for a task that does not exist. It is for the other packages of this module.
func ReadRecord(id string, answer any) (*Record, error) {
	words, err := engine.Elements(answer, nil)
	if err != nil || len(words) == 0 {
		return nil, err
	}
	if len(words)%2 != 0 {
		return nil, fmt.Errorf("the record of %s has %d words", id, len(words))
	}
	f := make(map[string]string, len(words)/2)
	for i := 2; i < len(words); i += 2 {
		f[engine.Text(words[i])] = engine.Text(words[i+1])
	}
	r := &Record{
		ID: id, Kind: f["kind"], Queue: f["queue"], Status: Status(f["status"]), IdempotencyKey: f["idempotency_key"],
		Priority: count(f["priority"]), Retries: count(f["retries"]), MaxRetries: count(f["max_retries"]),
		LeaseLosses: count(f["lease_losses"]), Code: count(f["code"]), Epoch: engine.Number(f["epoch"]), Worker: f["worker"],
		CreatedAt: engine.Instant(f["created_at"]), Deadline: engine.Instant(f["deadline_at"]), Until: engine.Instant(f["until"]),
		LimitAt: engine.Instant(f["limit_at"]), StartedAt: engine.Instant(f["started_at"]),
		CompletedAt: engine.Instant(f["completed_at"]), DetectedAt: engine.Instant(f["detected_at"]),
		Progress: f["progress"], ProgressAt: engine.Instant(f["progress_at"]),
		Error: f["error"], LastError: f["last_error"], Reason: Reason(f["reason"]),
		RetryError: f["retry_error"], RetryOf: f["retry_of"], HookOf: f["hook_of"], Node: readNode(f["node"]), Role: Role(f["role"]), ResultType: f["result_type"],
		TimedOut: f["timed_out"] != "", TimeoutType: TimeoutType(f["timeout_type"]), RetryState: f["retry_state"],
		Overdue: engine.Number(words[0]) == 1, Fields: f,
	}
	if r.Until.IsZero() {
		r.Until = r.Deadline
	}
	if !r.Status.Ended() {
		r.WarnAt, r.CancelAt, r.GraceEnds = engine.Instant(f["warn_at"]), engine.Instant(f["cancel_at"]), engine.Instant(f["grace_at"])
	}
	if r.Status == Pending {
		r.AvailableAt = engine.Instant(f["available_at"])
		r.Held, r.HeldAt = HeldReason(f["held"]), engine.Instant(f["held_at"])
		if r.Held == "" && r.LeaseLosses > 0 && r.AvailableAt.IsZero() {
			r.Held, r.HeldAt = HeldSuspect, engine.Instant(f["ready_at"])
		}
	}
	if payload := engine.Text(words[1]); payload != "" {
		r.Payload = []byte(payload)
	}
	if result, ok := f["result"]; ok {
		r.Result = []byte(result)
	}
	r.Headers = engine.Headers(f["headers"])
	return r, nil
}

func count(s string) int { return int(engine.Number(s)) }
