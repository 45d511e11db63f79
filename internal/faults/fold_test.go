package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
)

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
func fold(events []stages.Event) (fates map[string]*fate, wrong []string) {
	fates = map[string]*fate{}
	bad := map[string]bool{}
	for _, e := range events {
		if !slices.Contains(transitions, e.Kind) {
			continue
		}
		f := fates[e.ID]
		if f == nil {
			f = &fate{}
			fates[e.ID] = f
		}
		if why := f.meet(e); why != "" && !bad[e.ID] {
			bad[e.ID] = true
			wrong = append(wrong, fmt.Sprintf("%s: entry %s, %s of epoch %d: %s; all of it: %s", e.ID, e.Entry, e.Kind, e.Epoch, why, life(events, e.ID)))
		}
	}
	return fates, wrong
}

// meet applies an event, and says what is wrong with it.
func (f *fate) meet(e stages.Event) string {
	before := *f
	held := f.Status == queue.Running || f.lost
	switch e.Kind {
	case "task_enqueued":
		f.Status = queue.Pending
		if before.Status != "" {
			return "it was " + string(before.Status)
		}
		return ""
	case "task_started":
		f.Status, f.Epoch, f.lost = queue.Running, e.Epoch, false
		if before.Status != queue.Pending || e.Epoch != before.Epoch+1 {
			return fmt.Sprintf("it was %s after %d claims", before.Status, before.Epoch)
		}
		return ""
	case "task_retried", "task_released", "task_lease_lost":
		f.Status, f.lost = queue.Pending, e.Kind == "task_lease_lost"
		if e.Kind == "task_retried" {
			f.Retries++
		}
		if f.lost {
			f.Losses++
		}
		if !held || e.Epoch != f.Epoch {
			return fmt.Sprintf("it was %s by epoch %d", before.Status, before.Epoch)
		}
		return ""
	}
	f.ends++
	f.lost = false
	switch e.Kind {
	case "task_timed_out":
		f.Status, f.TimedOut = queue.Failed, true
	default:
		f.Status = queue.Status(strings.ToUpper(strings.TrimPrefix(e.Kind, "task_")))
	}
	if e.Word("reason") == "lease_lost" {
		f.Losses++
	}
	switch {
	case before.Status == "" || before.Status.Ended():
		return fmt.Sprintf("it was %q", before.Status)
	case e.Epoch != before.Epoch:
		return fmt.Sprintf("the newest claim was %d", before.Epoch)
	case e.Kind == "task_completed" && !held:
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
func life(events []stages.Event, id string) string {
	var text strings.Builder
	for _, e := range events {
		if e.ID == id {
			fmt.Fprintf(&text, "%s %s %d, ", e.Entry, e.Kind, e.Epoch)
		}
	}
	return text.String()
}
