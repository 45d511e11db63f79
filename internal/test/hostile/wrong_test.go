package hostile

import (
	"context"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// These calls were once half done, or stored data that no call could use.
func TestWrongCallsAreRefusedWithAnErrorText(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	endless := suspension("0-a1", "c9")
	for _, row := range []struct {
		claim, call string
		args        []any
		says        string
	}{
		{"a queue without a quota", "fetch", []any{"w", 1, 5, 15000, 0, "hit"}, "must be followed by a quota"},
		{"a quota that is not a number", "fetch", []any{"w", 1, 5, 15000, 0, "hit", "x"}, "must be the quota of hit"},
		{"a report that ends in an outcome", "settle", []any{"w1", "c", 2, "0-r1", 1, "complete", "x", "0-r2", 1}, "must be the number of outcomes"},
		{"a report with an incomplete ask", "settle", []any{"w1", "c", 1, "0-r1", 1, "complete", "x", 7}, "must be whole numbers: seq"},
		{"a report of 10^18 outcomes", "settle", []any{"w1", "c", "1000000000000000000", "0-r1", 1, "complete", "x"}, "must be the number of outcomes"},
		{"a wait with 10^18 fields", "suspend", with(endless, 4, "1000000000000000000"), "must be the number of fields of the wait"},
		{"a wait of 10^18 members", "suspend", with(endless, 17, "1000000000000000000"), "must be the number of members"},
		{"a checkpoint of 10^18 fields", "suspend", with(endless, 24, "1000000000000000000"), "must be the number of fields of the checkpoint"},
		{"10^18 shapes", "enqueue", []any{"1000000000000000000", 1, "kind", "k", 1, "0-n", ""}, "must be the number of shapes"},
		{"-1 partitions", "open", []any{2, -1, "all"}, "INVALID partitions"},
		{"an unknown level of events", "open", []any{2, 1, "loud"}, "INVALID events"},
		{"a name of 1 MiB, of two tasks", "enqueue", []any{1, 2, "kind", "k", strings.Repeat("x", 1<<20), "", 1, "0-n1", "", 1, "0-n2", ""}, "INVALID x"},
	} {
		t.Run(row.claim, func(t *testing.T) { s.refuses(t, root, row.call, row.args, row.says) })
	}
	for _, name := range []string{"h", "h:0", "h:{}", "h:{x}", "h:{-1}", "h:{00}", "h:{1}", "h:{7}", "h:{999}", "h:{0}x", "h:{0}:none", ""} {
		t.Run("the root "+name, func(t *testing.T) {
			s.refuses(t, name, "open", []any{2, 1, "all"}, "INVALID root")
			s.refuses(t, name, "enqueue", []any{1, 1, "kind", "k", 1, "0-n", ""}, "")
			s.refuses(t, name, "fetch", []any{"w", 1, 5, 15000, 0, "hit", 5}, "")
			s.refuses(t, name, "sweep", []any{"r", 100, 500}, "")
		})
	}
}

// with returns args with another value at one place.
func with(args []any, place int, value any) []any {
	return append(append(append([]any{}, args[:place]...), value), args[place+1:]...)
}

// refuses checks that a call is refused with a text that contains says, and changes nothing.
func (s *stage) refuses(t *testing.T, root, call string, args []any, says string) {
	t.Helper()
	for verb, handle := range map[string]string{"fcall": s.handle(call), "evalsha": s.scripts[call]} {
		reply, err := s.rdb.Do(context.Background(), append([]any{verb, handle, 1, root}, args...)...).Result()
		a := attempt{call: call, reply: reply, err: err}
		if accepted, fault := a.accepted(); accepted || fault != "" || !strings.Contains(a.String(), says) {
			t.Errorf("by %s: accepted %v, the reply %s; want %q: %s", verb, accepted, fault, says, a)
		}
	}
	if strings.HasPrefix(says, "CURFEW FULL") { // such a refusal is counted
		if n := s.rdb.HGet(context.Background(), root+":queue:slow", "refused").Val(); n != "2" {
			t.Errorf("two refused tasks were counted as %q", n)
		}
		s.rdb.HDel(context.Background(), root+":queue:slow", "refused")
	}
	if after := redistest.Dump(t, s.rdb, ""); after != s.text {
		t.Errorf("the refused call changed:\n%s", redistest.Diff(s.text, after))
	}
}
