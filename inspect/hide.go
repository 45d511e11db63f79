package inspect

import (
	"maps"
	"slices"
	"strconv"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
)

// Hidden replaces a text of users that Hide has removed.
const Hidden = "(hidden)"

// Hidable is a type from which Hide removes texts of users.
type Hidable interface {
	*queue.Record | *Whole | *Explanation | *ExportLine | *events.Event
}

// Hide removes the texts that users have put into a task: payload, result, headers, progress,
// errors, the reasons of cancellations, releases and waits, and an agent's journal. A program calls
// it before it shows tasks to people who may not read these. The fields payload_bytes and body_bytes
// of a record still hold the size of the payload, and of the result or error. Names stay: ids,
// kinds, queues, workers, idempotency keys, and labels of waits.
func Hide[T Hidable](value T) {
	switch v := any(value).(type) {
	case *queue.Record:
		hideRecord(v)
	case *Whole:
		hideWhole(v)
	case *Explanation:
		hideExplanation(v)
	case *ExportLine:
		hideLine(v)
	case *events.Event:
		hideEvent(v)
	}
}

// userTexts are the fields of a record that users have written.
var userTexts = []string{"result", "error", "headers", "last_error", "retry_error", "cancel_reason", "release_reason", "progress"}

func hideRecord(r *queue.Record) {
	if r == nil {
		return
	}
	r.Fields = hideFields(r.Fields, len(r.Payload))
	r.Payload, r.Result, r.Headers = nil, nil, nil
	r.Error, r.LastError, r.RetryError, r.Progress = "", "", "", ""
}

// hideFields returns the fields of a record without the texts of users.
func hideFields(fields map[string]string, payload int) map[string]string {
	fields = maps.Clone(fields)
	if payload > 0 {
		fields["payload_bytes"] = strconv.Itoa(payload)
	}
	if n := len(fields["result"]) + len(fields["error"]); n > 0 {
		fields["body_bytes"] = strconv.Itoa(n)
	}
	for _, name := range userTexts {
		delete(fields, name)
	}
	return fields
}

func hideWhole(w *Whole) {
	if w == nil {
		return
	}
	hideRecord(w.Record)
	for _, record := range slices.Concat(w.Children, w.Members) {
		hideRecord(record)
	}
	hideExplanation(w.Explanation)
	if w.Memory != nil {
		w.Memory.State = nil
		for n := range w.Memory.Journal {
			w.Memory.Journal[n] = Hidden
		}
	}
}

func hideExplanation(e *Explanation) {
	if e == nil {
		return
	}
	hide(&e.LastError)
	hide(&e.ReleaseReason)
	if e.End != nil {
		hide(&e.End.Error)
	}
	if e.Run != nil {
		hide(&e.Run.CancelReason)
	}
	if e.Wait != nil {
		hide(&e.Wait.Because)
	}
}

// openValues are the indexes whose values contain no texts of users.
var openValues = []string{"figures", "idem", "recount"}

func hideLine(l *ExportLine) {
	switch {
	case l == nil:
	case l.Type == "task":
		l.Fields = hideFields(l.Fields, len(l.Payload))
		l.Payload = nil
	case l.Type == "broken": // the error can quote the record
		hide(&l.Value)
	case l.Type == "index" && l.Index == "wait" && l.Member != "why":
	case l.Type == "index" && !slices.Contains(openValues, l.Index):
		hide(&l.Value)
	}
}

func hideEvent(e *events.Event) {
	if e == nil {
		return
	}
	e.Fields = maps.Clone(e.Fields)
	for name := range e.Fields {
		if e.Kind == "" || name == "error" { // another program can write anything
			e.Fields[name] = Hidden
		}
	}
}

func hide(text *string) {
	if *text != "" {
		*text = Hidden
	}
}
