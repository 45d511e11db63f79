package telemetry

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
)

// traced are the beginnings of the names of the workers that make spans of their attempts.
var traced = []string{"first", "second", "third", "agents"}

// ofEvents counts what the event streams say.
func ofEvents(events []harness.Event) ledger {
	l := ledger{}
	timedOut := map[string]bool{}
	for _, e := range events {
		line, kind, reason := e.Word("queue"), e.Word("task_kind"), e.Word("reason")
		switch e.Kind {
		case "task_enqueued":
			l.add(1, "created", line, kind)
		case "task_started", "task_lease_lost":
			begins := func(name string) bool { return strings.HasPrefix(e.Word("worker"), name+"-") }
			if slices.ContainsFunc(traced, begins) {
				n := 1
				if e.Kind == "task_lease_lost" { // the worker was killed: its handler did not return
					n = -1
				}
				l.add(n, "ran", line, kind)
				l.add(n, "ran-of", e.ID)
			}
		case "task_completed":
			l.add(1, "finished", line, kind, "COMPLETED", "")
		case "task_failed":
			l.add(1, "finished", line, kind, "FAILED", reason)
		case "task_cancelled":
			l.add(1, "finished", line, kind, "CANCELLED", reason)
		case "task_timed_out":
			l.add(1, "finished", line, kind, "FAILED", "timeout")
			l.add(1, "timeout", line, kind, e.Word("timeout_type"))
			l.add(1, "timeout-of", e.ID)
			l.add(1, "lag", line, e.Word("timeout_type"))
			timedOut[e.ID] = true
		case "attempt_timed_out":
			l.add(1, "again", line, kind)
			l.add(1, "lag", line, e.Word("timeout_type"))
		case "wait_timed_out":
			l.add(1, "waited", line, kind, e.Word("policy_applied"))
			l.add(1, "lag", line, e.Word("timeout_type"))
		case "task_released":
			l.add(1, "released", line, kind)
		case "rejected":
			if reason == "late" {
				l.add(1, "late", line)
			}
		case "task_resumed":
			l.add(1, "woken", e.Word("wait_mode"), reason)
			if member := e.ID + "." + e.Word("member"); timedOut[member] {
				l.add(1, "resumed", line, kind)
				l.add(1, "resumed-by", e.ID, member)
			}
		}
	}
	return l
}

// ofRecords counts the ends in records. A task that has not ended is an error.
func ofRecords(t *testing.T, records map[string]*queue.Record) ledger {
	t.Helper()
	l := ledger{}
	for id, r := range records {
		if r == nil || !r.Status.Ended() {
			t.Errorf("%s has not ended: %+v", id, r)
			continue
		}
		l.add(1, "created", r.Queue, r.Kind)
		l.add(1, "finished", r.Queue, r.Kind, string(r.Status), string(r.Reason))
		if r.TimedOut {
			l.add(1, "timeout", r.Queue, r.Kind, string(r.TimeoutType))
			l.add(1, "timeout-of", id)
		}
	}
	return l
}

var (
	sample = regexp.MustCompile(`(?m)^curfew_(\w+)\{(.*)\} (\S+)$`)
	label  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// ofMetrics counts what an exporter says. gauges has the sums of the gauges that are 0 when nothing is left to do.
func ofMetrics(t *testing.T, text string) (l, gauges ledger) {
	t.Helper()
	l, gauges = ledger{}, ledger{}
	for _, line := range sample.FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(line[3], 64)
		if err != nil {
			t.Fatalf("%s: %v", line[0], err)
		}
		n, of := int(value), map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(line[2], -1) {
			of[pair[1]] = pair[2]
		}
		switch name := line[1]; name {
		case "tasks_enqueued_total":
			l.add(n, "created", of["queue"], of["kind"])
			l.add(n, "enqueued", of["queue"], of["kind"], of["source"], of["when"])
		case "tasks_finished_total":
			l.add(n, "finished", of["queue"], of["kind"], of["status"], of["reason"])
		case "task_timeouts_total":
			l.add(n, "timeout", of["queue"], of["kind"], of["type"])
		case "timeout_detection_lag_seconds_count":
			l.add(n, "lag", of["queue"], of["type"])
		case "attempt_timeouts_total":
			l.add(n, "again", of["queue"], of["kind"])
		case "wait_timeouts_total":
			l.add(n, "waited", of["queue"], of["kind"], of["policy"])
		case "late_completions_total":
			l.add(n, "late", of["queue"])
		case "wait_wakeups_total":
			l.add(n, "woken", of["mode"], of["reason"])
		case "tasks":
			if of["status"] != "dead" { // these are kept until their retention is over
				gauges.add(n, name, of["queue"], of["status"])
			}
		case "tasks_delayed", "deadlines", "deadlines_overdue", "deadlines_due", "waits_open", "waits_unbounded", "workers", "broken_records":
			gauges.add(n, name)
		}
	}
	return l, gauges
}

// totals returns the lines of a scrape that must be the same in all exporters.
func totals(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		for _, m := range metrics.All() {
			if m.Source == metrics.FromNamespace && m.Type != metrics.Gauge && strings.HasPrefix(line, "curfew_"+m.Name) {
				kept = append(kept, line)
			}
		}
	}
	return strings.Join(kept, "")
}

// ofLogs counts the two lines about timeouts in the log files of all processes. Every line must be JSON.
func ofLogs(t *testing.T, files []string) ledger {
	t.Helper()
	l := ledger{}
	for _, file := range files {
		before := map[string]bool{} // the timeouts in this file
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if !bytes.HasSuffix(line, []byte("\n")) { // it is being written
				continue
			}
			var about struct {
				Msg, Queue, Kind string
				Task             string `json:"task_id"`
				Agent            string `json:"agent_id"`
				Type             string `json:"timeout_type"`
			}
			if err := json.Unmarshal(line, &about); err != nil {
				t.Errorf("%s has a line that is not JSON: %s", file, line)
			}
			switch about.Msg {
			case "Task timed out":
				l.add(1, "timeout", about.Queue, about.Kind, about.Type)
				l.add(1, "timeout-of", about.Task)
				before[about.Task] = true
			case "Resuming agent after task timeout":
				l.add(1, "resumed", about.Queue, about.Kind)
				l.add(1, "resumed-by", about.Agent, about.Task)
				if !before[about.Task] {
					t.Errorf("%s: an agent is resumed before the line of the timeout: %s", file, line)
				}
			}
		}
	}
	return l
}
