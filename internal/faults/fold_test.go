package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/eventlog"
	"github.com/curfew-dev/curfew/queue"
)

// event is one of the event stream.
type event struct {
	entry, id, kind string
	epoch           int64
	fields          map[string]any
}

func (e event) word(name string) string { s, _ := e.fields[name].(string); return s }

func readEvents(entry redis.XMessage) (events []event) {
	for _, about := range eventlog.Events(entry) {
		e := event{entry: entry.ID, fields: about}
		e.id, e.kind = e.word("task_id"), e.word("kind")
		e.epoch, _ = strconv.ParseInt(e.word("epoch"), 10, 64)
		events = append(events, e)
	}
	return events
}

// transitions are the events that change a task's status; the others tell of it.
var transitions = []string{"task_enqueued", "task_started", "task_retried", "task_released", "task_lease_lost",
	"task_completed", "task_failed", "task_cancelled", "task_timed_out"}

// fate is what the events tell of a task, in the order they were written.
type fate struct {
	Status          queue.Status
	Epoch           int64
	Retries, Losses int
	TimedOut        bool
	ends            int
	lost            bool // its lease, and nobody took it since
}

// fold plays the events again, and tells the first contradiction of each task.
func fold(events []event) (fates map[string]*fate, wrong []string) {
	fates = map[string]*fate{}
	bad := map[string]bool{}
	for _, e := range events {
		if !slices.Contains(transitions, e.kind) {
			continue
		}
		f := fates[e.id]
		if f == nil {
			f = &fate{}
			fates[e.id] = f
		}
		if why := f.meet(e); why != "" && !bad[e.id] {
			bad[e.id] = true
			wrong = append(wrong, fmt.Sprintf("%s: entry %s, %s of epoch %d: %s; all of it: %s", e.id, e.entry, e.kind, e.epoch, why, life(events, e.id)))
		}
	}
	return fates, wrong
}

// meet applies an event, and says what is wrong with it.
func (f *fate) meet(e event) string {
	before := *f
	held := f.Status == queue.Running || f.lost
	switch e.kind {
	case "task_enqueued":
		f.Status = queue.Pending
		if before.Status != "" {
			return "it was " + string(before.Status)
		}
		return ""
	case "task_started":
		f.Status, f.Epoch, f.lost = queue.Running, e.epoch, false
		if before.Status != queue.Pending || e.epoch != before.Epoch+1 {
			return fmt.Sprintf("it was %s after %d claims", before.Status, before.Epoch)
		}
		return ""
	case "task_retried", "task_released", "task_lease_lost":
		f.Status, f.lost = queue.Pending, e.kind == "task_lease_lost"
		if e.kind == "task_retried" {
			f.Retries++
		}
		if f.lost {
			f.Losses++
		}
		if !held || e.epoch != f.Epoch {
			return fmt.Sprintf("it was %s by epoch %d", before.Status, before.Epoch)
		}
		return ""
	}
	f.ends++
	f.lost = false
	switch e.kind {
	case "task_timed_out":
		f.Status, f.TimedOut = queue.Failed, true
	default:
		f.Status = queue.Status(strings.ToUpper(strings.TrimPrefix(e.kind, "task_")))
	}
	if e.word("reason") == "lease_lost" {
		f.Losses++
	}
	switch {
	case before.Status == "" || before.Status.Ended():
		return fmt.Sprintf("it was %q", before.Status)
	case e.epoch != before.Epoch:
		return fmt.Sprintf("the newest claim was %d", before.Epoch)
	case e.kind == "task_completed" && !held:
		return "nobody held it"
	}
	return ""
}

// is tells whether a record says the same.
func (f *fate) is(r *queue.Record) bool {
	return r != nil && f.Status == r.Status && f.Epoch == r.Epoch && f.Retries == r.Retries && f.Losses == r.LeaseLosses &&
		f.TimedOut == r.TimedOut && (f.ends == 1) == r.Status.Ended()
}

// life is what the events tell of one task.
func life(events []event, id string) string {
	var text strings.Builder
	for _, e := range events {
		if e.id == id {
			fmt.Fprintf(&text, "%s %s %d, ", e.entry, e.kind, e.epoch)
		}
	}
	return text.String()
}
