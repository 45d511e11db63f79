package facade

import (
	"fmt"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/queue"
)

// The greatest value is accepted, and the error of a greater one says what the greatest is.
func TestALimitIsAcceptedAndTheNextValueIsRefused(t *testing.T) { both(t, limits) }

func limits(t *testing.T, c *client, _ *queue.Queue) {
	tasks := func(n int) string { return "[" + strings.Repeat(`{"kind":"k"},`, n-1) + `{"kind":"k"}]` }
	claims := func(n int) string {
		var words []string
		for i := range n {
			words = append(words, fmt.Sprintf("0-%d=1", i))
		}
		return strings.Join(words, ",")
	}
	for _, row := range []struct {
		function string
		accepted []any // nil: no value is
		refused  []any
		says     string
	}{
		{"enqueue_many", []any{tasks(500)}, []any{tasks(501)}, "there are 501 tasks, and a call takes up to 500"},
		{"heartbeat", []any{"w", "claims", claims(1000)}, []any{"w", "claims", claims(1001)}, "there are 1001 claims, and a call takes up to 1000"},
		{"heartbeat", []any{"w", "lease", "24h"}, []any{"w", "lease", "25h"}, `lease "25h" must be from 0s to 24h`},
		{"heartbeat", []any{"w", "lease_ms", 86400000}, []any{"w", "lease_ms", 86400001}, "lease_ms"},
		{"fetch", []any{"w", "lease", "1ms"}, []any{"w", "lease", "0s"}, `lease "0s" must be from 1ms to 24h`},
		{"enqueue", nil, []any{"k", "id", "0-none.1"}, "the owner 0-none does not exist"},
	} {
		if _, err := c.try(row.function, row.accepted...); row.accepted != nil && err != nil {
			t.Errorf("%s %.40v = %v", row.function, row.accepted, err)
		}
		if _, err := c.try(row.function, row.refused...); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s %.40v = %v, want an error with %q", row.function, row.refused, err, row.says)
		}
	}
}
