package requirements

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func expressionOverrides(t *testing.T) {
	for _, c := range []struct {
		claim, expression string
		fail              error
		attempts          int
		phase             string
	}{
		{"phase Failed is retried", "tasks.k.phase != 'Succeeded'", worker.Discard(errAlways), 3, "Failed"},
		{"phase Error is not", "tasks.k.phase == 'Failed'", errAlways, 1, "Error"},
		{"success is never retried", "true", nil, 1, "Succeeded"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			r, n := running(t).attempts(queue.Task{MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}, Retry: c.expression}, always(c.fail))
			if n != c.attempts || r.Phase() != c.phase {
				t.Errorf("%d attempts, then %s; want %d, then %s", n, r.Phase(), c.attempts, c.phase)
			}
		})
	}
}

func expressionReads(t *testing.T) {
	for _, c := range []struct {
		claim, expression string
		output            string
		fail              error
	}{
		{"phase", "tasks.k.phase == 'Error'", "", errAlways},
		{"code", "tasks.k.code == 75", "", worker.Fail(75, errAlways)},
		{"msg", "tasks.k.msg contains 'alwa'", "", errAlways},
		{"outputs.parameters", "tasks.k.outputs.parameters.left == 3", `{"left":3}`, errAlways},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			s := running(t)
			var ran atomic.Int64
			w := worker.New(s.q, worker.Config{})
			w.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { ran.Add(1); return []byte(c.output), c.fail })
			stop := s.run(w)
			s.result(s.enqueue(queue.Task{Kind: "k", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}, Retry: c.expression}))
			stop()
			if n := ran.Load(); n != 2 {
				t.Errorf("%d attempts, want 2", n)
			}
		})
	}
}

func expressionFails(t *testing.T) {
	for claim, expression := range map[string]string{
		"a parameter that does not exist": "tasks.k.outputs.parameters.left > 0",
		"a text that is not a boolean":    "tasks.k.msg",
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			r, n := running(t).attempts(queue.Task{MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}, Retry: expression}, always(errAlways))
			if n != 1 || r.RetryError == "" || r.Error != errAlways.Error() {
				t.Errorf("%d attempts, error %q, retry error %q; want 1, the error of the attempt, and a reason", n, r.Error, r.RetryError)
			}
		})
	}
}
