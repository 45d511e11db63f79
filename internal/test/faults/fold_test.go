package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
)

// transitions are the events that change a task's status.
var transitions = []string{"task_enqueued", "task_started", "task_retried", "task_released", "task_lease_lost",
	"task_completed", "task_failed", "task_cancelled", "task_timed_out"}

// fate is the state of a task according to its events.
type fate struct {
	Status          queue.Status
	Epoch           int64
	Retries, Losses int
	TimedOut        bool
	ends            int
	lost            bool // the lease was lost, and the task was not claimed since
}

// fold replays the events. It returns the state of each task, and the first contradiction of each.
func fold(events []harness.Event) (fates map[string]*fate, wrong []string) {
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
			wrong = append(wrong, fmt.Sprintf("%s: entry %s, %s of epoch %d: %s; all its events: %s", e.ID, e.Entry, e.Kind, e.Epoch, why, life(events, e.ID)))
		}
	}
	return fates, wrong
}

// meet applies an event. It returns what is wrong with the event, or "".
func (f *fate) meet(e harness.Event) string {
	before := *f
	held := f.Status == queue.Running || f.lost
	switch e.Kind {
	case "task_enqueued":
		f.Status = queue.Pending
		if before.Status != "" {
			return "the task was already " + string(before.Status)
		}
		return ""
	case "task_started":
		f.Status, f.Epoch, f.lost = queue.Running, e.Epoch, false
		if before.Status != queue.Pending || e.Epoch != before.Epoch+1 {
			return fmt.Sprintf("the task was %s after %d claims", before.Status, before.Epoch)
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
			return fmt.Sprintf("the task was %s by epoch %d", before.Status, before.Epoch)
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
		return fmt.Sprintf("the task was %q", before.Status)
	case e.Epoch != before.Epoch:
		return fmt.Sprintf("the newest claim was %d", before.Epoch)
	case e.Kind == "task_completed" && !held:
		return "no worker held the task"
	}
	return ""
}

// is reports whether a record has the same state.
func (f *fate) is(r *queue.Record) bool {
	return r != nil && f.Status == r.Status && f.Epoch == r.Epoch && f.Retries == r.Retries && f.Losses == r.LeaseLosses &&
		f.TimedOut == r.TimedOut && (f.ends == 1) == r.Status.Ended()
}

// life returns the events of one task as text.
func life(events []harness.Event, id string) string {
	var text strings.Builder
	for _, e := range events {
		if e.ID == id {
			fmt.Fprintf(&text, "%s %s %d, ", e.Entry, e.Kind, e.Epoch)
		}
	}
	return text.String()
}
