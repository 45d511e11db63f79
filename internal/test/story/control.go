package story

import (
	"cmp"
	"maps"
	"slices"

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
)

// control queue=default paused=1 max_running=2 rate=1 per_ms=1000 burst=1
func (s *stage) control(w words) []string {
	args := []any{w.named["queue"]}
	names := slices.Sorted(maps.Keys(w.named))
	for _, name := range names {
		if name != "queue" {
			args = append(args, name, w.named[name])
		}
	}
	return s.word(s.call("control", args...))
}

// configure events=all event_mib=128
func (s *stage) configure(w words) []string {
	var args []any
	for _, name := range slices.Sorted(maps.Keys(w.named)) {
		args = append(args, name, w.named[name])
	}
	return s.word(s.call("configure", args...))
}

// drain queue=default n=500 reason=x call=C
func (s *stage) drain(w words) []string {
	call, n := w.named["call"], w.named["n"]
	if call == "" {
		call = queue.NewCall()
	}
	if n == "" {
		n = "500"
	}
	return s.word(s.call("drain", call, w.named["queue"], n, w.named["reason"]))
}

// define kind=k timeout=5s max_retries=2
func (s *stage) define(w words) []string {
	args := []any{w.named["kind"]}
	for _, name := range slices.Sorted(maps.Keys(w.named)) {
		if name != "kind" {
			args = append(args, stored(name, w.named[name])...)
		}
	}
	return s.word(s.call("define", args...))
}

// describe worker=w1 state=draining queues=a,b kinds=k,l: what a worker tells of itself.
func (s *stage) describe(w words) []string {
	about, queues := map[string]any{"name": "crew"}, map[string]int{}
	for _, name := range split2(w.named["queues"]) {
		queues[name] = 1
		about["queues"] = queues
	}
	if kinds := split2(w.named["kinds"]); len(kinds) > 0 {
		about["kinds"] = kinds
	}
	if program := w.named["program"]; program != "" {
		about["program"] = program
	}
	return s.word(s.call("describe_worker", w.named["worker"], cmp.Or(w.named["state"], "running"), jsonx.Encode(about)))
}
