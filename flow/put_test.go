package flow_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// definitionWith returns a definition p with more fields.
func definitionWith(more string) string { return dagOf("p", more, job("x", ""), "") }

// kindOfP returns the defaults of the runs of p. They must be the same in all partitions.
func (s *stage) kindOfP() map[string]string {
	s.t.Helper()
	var first map[string]string
	for p := range s.q.Partitions() {
		stored, err := s.q.Client().HGet(s.ctx, s.q.Root(p), "kind:flow.p").Result()
		if err != nil && p == 0 {
			stored = ""
		}
		fields := map[string]string{}
		for line := range strings.SplitSeq(stored, "\n") {
			name, value, _ := strings.Cut(line, "=")
			fields[name] = value
		}
		delete(fields, "")
		if p > 0 && !maps.Equal(fields, first) {
			s.t.Fatalf("partition %d has %v, and partition 0 has %v", p, fields, first)
		}
		first = fields
	}
	return first
}

// inPartitions returns a stage whose namespace has three partitions.
func inPartitions(t *testing.T) *stage {
	t.Parallel()
	return &stage{t: t, ctx: t.Context(), q: queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t), Partitions: 3})}
}

// What others set of the kind of the runs stays, and what a version no longer says goes.
func TestPutChangesOnlyWhatTheDefinitionSays(t *testing.T) {
	s := inPartitions(t)
	is := func(when string, want map[string]string) {
		t.Helper()
		if got := s.kindOfP(); !maps.Equal(got, want) {
			t.Errorf("%s: the kind has %v, want %v", when, got, want)
		}
	}
	first := definitionWith(`,"timeout":"1m","on_timeout":"fail","hooks":{"on_failure":{"kind":"alarm","queue":"fast"}}`)
	s.put(first)
	is("at first", map[string]string{"timeout_ms": "60000", "on_deadline": "fail", "hook_failure": "alarm fast"})

	set := queue.Defaults{Timeout: 5 * time.Minute, Retention: time.Hour, Hooks: queue.Hooks{OnSuccess: queue.Hook{Kind: "done"}}}
	if err := s.q.DefineKind(s.ctx, "flow.p", set); err != nil {
		t.Fatal(err)
	}
	own := map[string]string{"timeout_ms": "300000", "retention_ms": "3600000", "hook_success": "done"}
	is("as others set it", own)
	if s.put(first).New {
		t.Error("the same text is new")
	}
	is("after the same text", own)

	s.put(definitionWith(`,"timeout":"2m","hooks":{"on_cancel":{"kind":"c"}}`))
	is("after a new version", map[string]string{"timeout_ms": "120000", "retention_ms": "3600000", "hook_success": "done", "hook_cancel": "c"})
	s.put(definitionWith(`,"timeout":null`))
	is("after one without a limit", map[string]string{"timeout": "none", "retention_ms": "3600000", "hook_success": "done"})
	s.put(definitionWith(`,"timeout":"2m"`))
	is("after one with a limit again", map[string]string{"timeout_ms": "120000", "retention_ms": "3600000", "hook_success": "done"})

	if err := s.q.DefineKind(s.ctx, "flow.p", queue.Defaults{Timeout: time.Hour, WarnAt: 0.5}); err != nil {
		t.Fatal(err)
	}
	s.put(definitionWith(`,"timeout":"3m"`))
	if _, err := flow.Put(s.ctx, s.q, []byte(definitionWith(`,"timeout":null,"description":"x"`))); !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), "warn_percent of the kind flow.p needs a timeout_ms") {
		t.Errorf("a version that does not fit to what others set returns %v", err)
	}
	is("after a version that does not fit", map[string]string{"timeout_ms": "180000", "warn_percent": "50"})
	if _, newest, err := flow.Get(s.ctx, s.q, "p", ""); err != nil || newest != "5" {
		t.Errorf("the newest version is %s, %v", newest, err)
	}
}

// An old version that is put again, and one that is put late in another partition, change nothing: the newest version decides.
func TestOnlyTheNewestVersionChangesTheKind(t *testing.T) {
	s := inPartitions(t)
	versions := []string{definitionWith(`,"version":"1","timeout":"1m"`), definitionWith(`,"version":"2","timeout":"2m"`)}
	s.put(versions[0])
	s.put(versions[1])
	s.put(versions[0])
	if got := s.kindOfP()["timeout_ms"]; got != "120000" {
		t.Errorf("after an old version the time is %s", got)
	}
	for p := range s.q.Partitions() { // a slow Put of version 1 comes to the other partitions behind that of version 2
		if _, err := s.q.Engine().Call(s.ctx, p, "put_flow", "p", "1", "", "1", "timeout_ms", 60000); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.kindOfP()["timeout_ms"]; got != "120000" {
		t.Errorf("after a late call for an old version the time is %s", got)
	}
	for p := range s.q.Partitions() { // the program died before it came to the other partitions
		if p > 0 {
			if err := s.q.Client().HDel(s.ctx, s.q.Root(p), "kind:flow.p", "flow:p").Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.put(versions[1])
	if got := s.kindOfP()["timeout_ms"]; got != "120000" {
		t.Errorf("after the same text again the time is %s", got)
	}

	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if _, err := flow.Put(s.ctx, s.q, []byte(definitionWith(fmt.Sprintf(`,"timeout":"%ds"`, 100+n)))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, _, err := flow.Get(s.ctx, s.q, "p", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.kindOfP()["timeout_ms"]; !strings.Contains(string(text), `"timeout":"`+strings.TrimSuffix(got, "000")+`s"`) {
		t.Errorf("after 20 at once the time is %s, and the newest version is %s", got, text)
	}
}

// A version that is counted follows the greatest number, as long as there is a next one.
func TestVersionsAreCounted(t *testing.T) {
	s := newStage(t)
	for i, test := range []struct{ given, next, after string }{
		{"999999999", "1000000000", "1000000001"},
		{"202611240108", "202611240109", "202611240110"},
		{"20261124010800123", "202611240111", "202611240112"}, // it is too long for a number
	} {
		s.put(definitionWith(fmt.Sprintf(`,"version":%q`, test.given)))
		for k, want := range []string{test.next, test.after} {
			if got := s.put(definitionWith(fmt.Sprintf(`,"description":"%d %d"`, i, k))).Version; got != want {
				t.Errorf("behind %s comes %s, want %s", test.given, got, want)
			}
		}
	}
	s.put(definitionWith(`,"version":"999999999999999"`))
	if _, err := flow.Put(s.ctx, s.q, []byte(definitionWith(`,"description":"more"`))); !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), "version must be given") {
		t.Errorf("after the last number: %v", err)
	}
}
