// Package vocabulary has the names of all values that programs exchange with Curfew: in arguments and
// replies of the functions, in records, events, lines of JSON and the output of commands. A name has one
// type wherever it is used. docs/reference/names.md is the page for readers.
package vocabulary

import (
	"cmp"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/field"
)

// Type is the type of the values of a name, which determines how they are written.
type Type string

// The types. Arguments and replies of functions have texts and lists only: numbers are in decimal there,
// and a flag is 0 or 1.
const (
	Text    Type = "text"    // any bytes; JSON has base64 under name_base64 if they are not UTF-8
	Number  Type = "number"  // a whole number, but for scores and tokens
	Instant Type = "instant" // ms since 1970 on the clock of Redis
	Span    Type = "span"    // in ms
	Flag    Type = "flag"
	List    Type = "list"
	Object  Type = "object"
)

// names has the names of each type, besides those of the fields of tasks (internal/field). Those that end with _at are instants, and those that end with _ms are
// spans, so most of them are not listed.
var names = map[Type]string{
	Text: `
		task_id task_kind status worker result error reason timeout_type
		on_pending losers retry_state retry_error hook_of until_of enqueued_by call
		suspended_by requeued_by lost_by late_by counted_as cancelled_by cancel_reason last_error progress owner
		agent_execution_id workflow_run_id platform policy_applied wait_mode label wait_reason member op task_worker
		retry class verdict release release_reason held held_by
		why sentence hold word text by kept_by task
		namespace events figures channel cursor oldest last stream type index of key page next recounted turn_of about state
		host name node definition did library value level subject cure rule repair commit go program url
		calls fan_in path phase template token graph`,
	Number: `
		version epoch attempt retries lease_losses children children_seen code timed_out watched journal collects
		waiting woken payload_bytes body_bytes factor_percent task_epoch entry members settled
		partition partitions seq known front running enqueued completed failed cancelled refused paused
		max_running max_length rate burst tokens controlled event_mib event_count event_bytes made recount_again
		batch slots left number build before ready dead deadlines limits delayed waits workers draining retained
		broken count bounded_all bounded_fail_fast bounded_settled bounded_any bounded_any_ok bounded_n_of_m bounded_n_settled
		bounded_peek bounded_collect unbounded_all unbounded_fail_fast unbounded_settled unbounded_any unbounded_any_ok unbounded_n_of_m
		unbounded_n_settled unbounded_peek unbounded_collect masters looked_at_keys keys unknown namespaces live function_count queue_count
		attempts line_number started fired warned given_back waits_timed_out drained removed looked pid concurrency weight
		of_number past later length ahead need ok bad more score place missed format attempt_timeouts late_outcomes passed_on`,
	Instant: `
		now until turn_until armed standby at since_at created_at started_at completed_at detected_at
		limit_at warn_at ready_at attempt_at line_at cancel_at grace_at progress_at held_at full_at free_at lease_ends_at attempt_ends_at
		from_at wait_deadline_at removed_at read_at stop_at swept_at lacks_at wanted_at`,
	Span: `
		per_ms wait_ms within_ms lease_ms fallback_ms left_ms lag_ms limit_ms p50_ms p99_ms p995_ms max_ms wait_p50_ms wait_p99_ms lag_p50_ms lag_p99_ms
		timeout_duration_ms latest_ms default_timeout_ms`,
	Flag: `overdue good new changed set_back stop turn complete mine deleted created never_started`,
	List: `roots claims stops wake queues tasks wait_for_tasks warnings missing_partitions records lines unlisted child_tasks entries kinds counts timeouts wakeups
		definitions faults nodes unbounded_nodes versions waits_for`,
	Object: `fields bound ends_by line run wait lag end key_counts memory part plan parameters`,
}

var types = func() map[string]Type {
	byName := map[string]Type{}
	for kind, list := range names {
		for name := range strings.FieldsSeq(list) {
			byName[name] = kind
		}
	}
	ofField := map[field.Type]Type{field.Number: Number, field.Percent: Number, field.Span: Span, field.Instant: Instant}
	for _, f := range field.All {
		if f.By != field.Client {
			byName[f.Name] = cmp.Or(ofField[f.Type], Text)
			byName[f.InJSON()] = byName[f.Name]
		}
	}
	return byName
}()

// Of returns the type of a name. known is false for a name that Curfew does not use. Such a name may come
// from a newer version.
func Of(name string) (t Type, known bool) {
	t, known = types[name]
	switch {
	case known:
	case strings.HasSuffix(name, "_at"):
		t = Instant
	case strings.HasSuffix(name, "_ms"):
		t = Span
	default:
		t = Text
	}
	return t, known
}

// Names returns the names of a type, sorted.
func Names(t Type) []string {
	var of []string
	for name, kind := range types {
		if kind == t {
			of = append(of, name)
		}
	}
	slices.Sort(of)
	return of
}
