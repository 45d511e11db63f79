package jsonx

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/queue"
)

// taskMember is a member of the object, and how it sets a field of a task.
type taskMember struct {
	set   func(t *queue.Task, value string) error
	raw   bool   // the value is any JSON, and is taken as its text
	other string // another name of the same field
	both  string // why a task cannot have both names
}

// taskMembers are made from the table of fields. What is read by its own code is beside them.
var taskMembers = func() map[string]taskMember {
	all := map[string]taskMember{
		"payload":        {raw: true, other: "payload_base64", both: oneBody, set: func(t *queue.Task, value string) error { t.Payload = []byte(value); return nil }},
		"payload_base64": {other: "payload", both: oneBody, set: setBase64},
		"headers":        {raw: true, set: setHeaders},
		"role":           {set: setRole},
	}
	for i := range field.All {
		f := &field.All[i]
		name, unit := f.Plain(), f.InJSON()
		switch _, done := all[name]; {
		case done || f.By == field.Client:
		case f.Type == field.Span:
			const both = "is given with and without _ms: give one of the two"
			all[name] = taskMember{other: unit, both: both, set: spanField(f, func(value string) (time.Duration, error) { return withUnit(value, unit) })}
			all[unit] = taskMember{other: name, both: both, set: spanField(f, inMs)}
		default:
			all[name] = taskMember{set: plainField(f)}
		}
	}
	return all
}()

// plainField returns how a field is set that has one name.
func plainField(f *field.Field) func(*queue.Task, string) error {
	return func(t *queue.Task, value string) error {
		n, err := strconv.ParseUint(value, 10, 63)
		switch f.Type {
		case field.Number, field.Percent:
			if err != nil || n < uint64(f.Least) || n > uint64(f.Most) {
				return fmt.Errorf("%.20q must be a whole number from %d to %d", value, f.Least, f.Most)
			}
		case field.Instant:
			if err != nil || n < 1 || n > 1<<53 {
				return fmt.Errorf("%.40q must be an instant: a whole number of ms since 1970", value)
			}
		case field.Word: // the words of a type of strings are checked with the task
			if f.In(t).Kind() == reflect.Bool && !slices.Contains(f.Words, value) {
				return fmt.Errorf("%.40q must be %s", value, strings.Join(f.Words, " or "))
			}
		case field.Hook:
			if _, queue, both := strings.Cut(value, " "); both && queue == "" {
				return fmt.Errorf("%.40q must be a kind, or a kind, a space and a queue", value)
			}
		}
		if f.Set(t, value); f.Name == "max_retries" && n == 0 {
			t.MaxRetries = queue.NoRetries
		}
		return nil
	}
}

// spanField returns how a duration is set, which read reads.
func spanField(f *field.Field, read func(string) (time.Duration, error)) func(*queue.Task, string) error {
	return func(t *queue.Task, value string) (err error) {
		d := queue.None
		if value != "none" {
			d, err = read(value)
		}
		switch {
		case err != nil || d != 0 || f.Name == "delay_ms":
		case f.ZeroIsNone:
			d = queue.None
		default:
			err = errors.New("must not be 0: leave it out, or write none, so that no default applies")
		}
		f.In(t).SetInt(int64(d))
		return err
	}
}

func withUnit(value, nameInMs string) (time.Duration, error) {
	d, err := duration.Parse(value)
	if err != nil && strings.Trim(value, "0123456789") == "" {
		err = fmt.Errorf("%.40q has no unit: write %.40ss, or give %s in ms", value, value, nameInMs)
	}
	return d, err
}

func inMs(value string) (time.Duration, error) {
	const longest = time.Duration(1<<63 - 1)
	ms, err := strconv.ParseUint(value, 10, 63)
	if err != nil || ms > uint64(longest/time.Millisecond) {
		return 0, fmt.Errorf("%.40q must be a whole number of ms, up to 292 years", value)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

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
