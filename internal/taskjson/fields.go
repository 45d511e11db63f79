package taskjson

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/queue"
)

// field says how a member of the object sets a field of a task.
type field struct {
	set   func(t *queue.Task, value string) error
	raw   bool   // the value is any JSON, and is taken as its text
	other string // another name of the same field
	both  string // why a task cannot have both names
}

var fields = map[string]field{
	"kind":              text(func(t *queue.Task) *string { return &t.Kind }),
	"id":                text(func(t *queue.Task) *string { return &t.ID }),
	"queue":             text(func(t *queue.Task) *string { return &t.Queue }),
	"idempotency_key":   text(func(t *queue.Task) *string { return &t.IdempotencyKey }),
	"retry_of":          text(func(t *queue.Task) *string { return &t.RetryOf }),
	"retry_expression":  text(func(t *queue.Task) *string { return &t.Retry }),
	"on_timeout":        text(func(t *queue.Task) *queue.OnTimeout { return &t.OnTimeout }),
	"on_deadline":       text(func(t *queue.Task) *queue.OnDeadline { return &t.OnDeadline }),
	"idempotency_scope": text(func(t *queue.Task) *queue.Scope { return &t.IdempotencyScope }),
	"payload":           {raw: true, other: "payload_base64", both: oneBody, set: func(t *queue.Task, value string) error { t.Payload = []byte(value); return nil }},
	"payload_base64":    {other: "payload", both: oneBody, set: setBase64},
	"headers":           {raw: true, set: setHeaders},
	"deadline_at":       instant(func(t *queue.Task) *time.Time { return &t.Deadline }),
	"available_at":      instant(func(t *queue.Task) *time.Time { return &t.StartAt }),
	"priority":          number(0, 3, func(t *queue.Task, n int) { t.Priority = n }),
	"budget_percent":    number(1, 100, func(t *queue.Task, n int) { t.Budget = float64(n) / 100 }),
	"warn_percent":      number(1, 99, func(t *queue.Task, n int) { t.WarnAt = float64(n) / 100 }),
	"jitter":            number(0, 100, func(t *queue.Task, n int) { t.Backoff.Jitter = float64(n) / 100 }),
	"max_retries": number(0, 1<<53, func(t *queue.Task, n int) {
		if t.MaxRetries = n; n == 0 {
			t.MaxRetries = queue.NoRetries
		}
	}),
	"backoff":      {set: setBackoff},
	"role":         {set: setRole},
	"hook_success": hook(func(h *queue.Hooks) *queue.Hook { return &h.OnSuccess }),
	"hook_failure": hook(func(h *queue.Hooks) *queue.Hook { return &h.OnFailure }),
	"hook_timeout": hook(func(h *queue.Hooks) *queue.Hook { return &h.OnTimeout }),
	"hook_cancel":  hook(func(h *queue.Hooks) *queue.Hook { return &h.OnCancel }),
}

func init() {
	span("timeout", false, func(t *queue.Task) *time.Duration { return &t.Timeout })
	span("delay", true, func(t *queue.Task) *time.Duration { return &t.Delay })
	span("queue_timeout", false, func(t *queue.Task) *time.Duration { return &t.QueueTimeout })
	span("attempt_timeout", false, func(t *queue.Task) *time.Duration { return &t.AttemptTimeout })
	span("cancel_grace", false, func(t *queue.Task) *time.Duration { return &t.CancelGrace })
	span("timeout_grace", false, func(t *queue.Task) *time.Duration { return &t.TimeoutGrace })
	span("retention", false, func(t *queue.Task) *time.Duration { return &t.Retention })
	span("idempotency_window", false, func(t *queue.Task) *time.Duration { return &t.IdempotencyWindow })
	span("backoff_delay", false, func(t *queue.Task) *time.Duration { return &t.Backoff.Delay })
	span("backoff_max", false, func(t *queue.Task) *time.Duration { return &t.Backoff.Max })
}

func text[T ~string](of func(*queue.Task) *T) field {
	return field{set: func(t *queue.Task, value string) error { *of(t) = T(value); return nil }}
}

// number is a field whose value is a whole number within limits.
func number(least, most uint64, set func(*queue.Task, int)) field {
	return field{set: func(t *queue.Task, value string) error {
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%.20q must be a whole number from %d to %d", value, least, most)
		}
		set(t, int(n))
		return nil
	}}
}

func instant(of func(*queue.Task) *time.Time) field {
	return field{set: func(t *queue.Task, value string) error {
		ms, err := strconv.ParseUint(value, 10, 63)
		if err != nil || ms < 1 || ms > 1<<53 {
			return fmt.Errorf("%.40q must be an instant: a whole number of ms since 1970", value)
		}
		*of(t) = time.UnixMilli(int64(ms))
		return nil
	}}
}

// span adds both names of a duration: one for a text with a unit, one for a number of ms.
func span(name string, zero bool, of func(*queue.Task) *time.Duration) {
	set := func(read func(string) (time.Duration, error)) func(*queue.Task, string) error {
		return func(t *queue.Task, value string) (err error) {
			d := queue.None
			if value != "none" {
				d, err = read(value)
			}
			if err == nil && d == 0 && !zero {
				err = errors.New("must not be 0: leave it out, or write none, so that no default applies")
			}
			*of(t) = d
			return err
		}
	}
	inMs := name + "_ms"
	const both = "is given with and without _ms: give one of the two"
	fields[name] = field{other: inMs, both: both, set: set(func(value string) (time.Duration, error) {
		d, err := duration.Parse(value)
		if err != nil && strings.Trim(value, "0123456789") == "" {
			err = fmt.Errorf("%.40q has no unit: write %.40ss, or give %s in ms", value, value, inMs)
		}
		return d, err
	})}
	fields[inMs] = field{other: name, both: both, set: set(func(value string) (time.Duration, error) {
		ms, err := strconv.ParseUint(value, 10, 63)
		if err != nil || ms > uint64(longest/time.Millisecond) {
			return 0, fmt.Errorf("%.40q must be a whole number of ms, up to 292 years", value)
		}
		return time.Duration(ms) * time.Millisecond, nil
	})}
}

const longest = time.Duration(1<<63 - 1)

const oneBody = "is given as JSON and in base64: give one of the two"

func setBase64(t *queue.Task, value string) (err error) {
	if t.Payload, err = base64.StdEncoding.Strict().DecodeString(value); err != nil {
		err = errors.New("must be base64 with + / and =")
	}
	return err
}

func setHeaders(t *queue.Task, value string) error {
	var all map[string]*string
	if value == "null" {
		return nil
	}
	err := json.Unmarshal([]byte(value), &all)
	t.Headers = map[string]string{}
	for name, text := range all {
		if text == nil {
			err = errors.New("null")
			break
		}
		t.Headers[name] = *text
	}
	if err != nil {
		return errors.New(`must be a JSON object of strings, such as {"traceparent":"00-…"}`)
	}
	return nil
}

func setBackoff(t *queue.Task, value string) error {
	if value != "constant" && value != "exponential" {
		return fmt.Errorf("%.40q must be constant or exponential", value)
	}
	t.Backoff.Exponential = value == "exponential"
	return nil
}

func setRole(t *queue.Task, value string) error {
	switch value {
	case "promise":
		t.Promise = true
	case "timer":
		t.Timer = true
	default:
		return fmt.Errorf("%.40q must be promise or timer", value)
	}
	return nil
}

func hook(of func(*queue.Hooks) *queue.Hook) field {
	return field{set: func(t *queue.Task, value string) error {
		h := of(&t.Hooks)
		var both bool
		if h.Kind, h.Queue, both = strings.Cut(value, " "); both && h.Queue == "" {
			return fmt.Errorf("%.40q must be a kind, or a kind, a space and a queue", value)
		}
		return nil
	}}
}
