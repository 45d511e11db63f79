package queue

import (
	"encoding/json"
	"hash/crc32"
	"strings"
	"time"
	"unicode/utf8"
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
	// QueueTimeout is how long it may stand in line before it is FAILED.
	QueueTimeout time.Duration
	// AttemptTimeout is how long one run of the handler may take.
	AttemptTimeout time.Duration
	// MaxRetries is how often a failed attempt is repeated. Timeouts are final.
	MaxRetries int

	// Delay and StartAt say when it may start at the earliest. One or neither.
	Delay   time.Duration
	StartAt time.Time
	// Retention is how long the record is kept after the end. Defaults to 15 min
	// for COMPLETED, 7 days for FAILED and CANCELLED; at least 1 min.
	Retention time.Duration
	// IdempotencyKey makes the first task with this key the only one, until a day
	// after its end.
	IdempotencyKey string
}

// Receipt says what became of a task that was handed over.
type Receipt struct {
	ID       string
	Deadline time.Time // zero: none
	New      bool      // false: the idempotency key was known, and ID is the first task's
	Err      error     // in lists: why this one was refused; the others are not affected
}

// maxSpan is 2^53 ms: the greatest instant that a score holds exactly.
const maxSpan = 1 << 53

// check refuses what can be seen to be wrong without a look at Redis.
func (t *Task) check(maxBytes int) error {
	if !validName(t.Kind, "._-:/") {
		return invalid("kind", "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit", clip(t.Kind))
	}
	if t.Queue != "" && !validName(t.Queue, "._-") {
		return invalid("queue", "%q must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit", clip(t.Queue))
	}
	if t.Priority < 0 || t.Priority > 3 {
		return invalid("priority", "%d must be 0, 1, 2 or 3 (3 goes first)", t.Priority)
	}
	if t.MaxRetries < 0 {
		return invalid("max retries", "%d must not be negative", t.MaxRetries)
	}
	if err := t.checkTimes(); err != nil {
		return err
	}
	if len(t.Payload) > maxBytes {
		return invalid("payload", "has %d bytes, the limit is %d: store it elsewhere and send a reference, or raise Config.MaxBytes", len(t.Payload), maxBytes)
	}
	size := 0
	for name, value := range t.Headers {
		size += len(name) + len(value)
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return invalid("headers", "%q is not UTF-8: put bytes into the payload", clip(name))
		}
	}
	if size > maxBytes {
		return invalid("headers", "have %d bytes, the limit is %d", size, maxBytes)
	}
	if len(t.IdempotencyKey) > 512 {
		return invalid("idempotency key", "has %d bytes, the limit is 512: hash it", len(t.IdempotencyKey))
	}
	return nil
}

func (t *Task) checkTimes() error {
	for _, span := range []struct {
		field string
		d     time.Duration
	}{
		{"timeout", t.Timeout}, {"queue timeout", t.QueueTimeout}, {"attempt timeout", t.AttemptTimeout},
		{"delay", t.Delay}, {"retention", t.Retention},
	} {
		if span.d < 0 {
			return invalid(span.field, "%v must be positive; leave it out for none", span.d)
		}
		if span.d > 0 && span.d < time.Millisecond {
			return invalid(span.field, "%v is under 1ms, the finest that is kept", span.d)
		}
	}
	if t.Timeout != 0 && !t.Deadline.IsZero() {
		return invalid("deadline", "give a timeout or a deadline, not both")
	}
	if t.Delay != 0 && !t.StartAt.IsZero() {
		return invalid("start", "give a delay or a start time, not both")
	}
	for _, instant := range []struct {
		field string
		at    time.Time
	}{{"deadline", t.Deadline}, {"start", t.StartAt}} {
		// Not by UnixMilli, which runs over in the far future.
		if at := instant.at; !at.IsZero() && (at.Before(time.UnixMilli(1)) || at.After(time.UnixMilli(maxSpan))) {
			return invalid(instant.field, "must be between 1970 and 2^53 ms after it")
		}
	}
	return nil
}

func validName(s, more string) bool {
	if s == "" || len(s) > 128 || !alphanumeric(s[0]) {
		return false
	}
	for i := range len(s) {
		if !alphanumeric(s[i]) && !containsByte(more, s[i]) {
			return false
		}
	}
	return true
}

func containsByte(s string, c byte) bool {
	for i := range len(s) {
		if s[i] == c {
			return true
		}
	}
	return false
}

// fields appends the task as enqueue.lua wants it: a count, then names and values.
func (t *Task) fields(args []any, id string) []any {
	at := len(args)
	args = append(args, 0, "id", id, "kind", t.Kind)
	add := func(name string, value any) { args = append(args, name, value) }
	if t.Queue != "" {
		add("queue", t.Queue)
	}
	if len(t.Payload) > 0 {
		add("payload", t.Payload)
	}
	if len(t.Headers) > 0 {
		headers, _ := json.Marshal(t.Headers) // a map of strings always can
		add("headers", headers)
	}
	if t.Priority != 0 {
		add("priority", t.Priority)
	}
	if t.MaxRetries != 0 {
		add("max_retries", t.MaxRetries)
	}
	span := func(name string, d time.Duration) {
		if d > 0 {
			add(name, d.Milliseconds())
		}
	}
	span("timeout_ms", t.Timeout)
	span("queue_timeout_ms", t.QueueTimeout)
	span("attempt_timeout_ms", t.AttemptTimeout)
	span("delay_ms", t.Delay)
	span("retention_ms", t.Retention)
	if !t.Deadline.IsZero() {
		add("deadline_at", t.Deadline.UnixMilli())
	}
	if !t.StartAt.IsZero() {
		add("available_at", t.StartAt.UnixMilli())
	}
	if t.IdempotencyKey != "" {
		add("idempotency_key", t.IdempotencyKey)
	}
	args[at] = (len(args) - at - 1) / 2
	return args
}

// size is about what the task takes on the wire.
func (t *Task) size() int {
	n := 200 + len(t.Payload)
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
			return 0, true, invalid("id", "%q: only a child is given one (its owner's id, a dot, a name); leave it out", clip(t.ID))
		}
		if t.IdempotencyKey != "" {
			return 0, true, invalid("idempotency key", "%q: a child's id is its idempotency key; leave one of them out", clip(t.IdempotencyKey))
		}
		p, err := partitionIn(t.ID, partitions)
		return p, true, err
	case t.IdempotencyKey != "":
		return int(crc32.ChecksumIEEE([]byte(t.IdempotencyKey)) % uint32(partitions)), true, nil
	}
	return 0, false, nil
}
