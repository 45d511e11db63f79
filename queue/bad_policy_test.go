package queue_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// onEnqueue returns a row that enqueues a task, which must be refused.
func onEnqueue(claim string, task queue.Task, field, advice string) badInput {
	return badInput{claim, func(s *scene) error { return s.enqueue(task) }, refusal.ErrInvalid, field, advice}
}

func TestEnqueueRefusesBadRetries(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	twice := queue.Task{MaxRetries: 2}
	with := func(change func(*queue.Task)) queue.Task { task := twice; change(&task); return task }
	backoff := func(b queue.Backoff) queue.Task { return with(func(t *queue.Task) { t.Backoff = b }) }
	rows := []badInput{
		onEnqueue("a retry of timeouts without retries", queue.Task{OnTimeout: queue.OnTimeoutRetry}, "on_timeout", "needs max_retries of at least 1"),
		onEnqueue("a retry of timeouts with NoRetries", queue.Task{OnTimeout: queue.OnTimeoutRetry, MaxRetries: queue.NoRetries}, "on_timeout", "needs max_retries of at least 1"),
		onEnqueue("an unknown policy", with(func(t *queue.Task) { t.OnTimeout = "again" }), "on timeout", `"again" must be fail or retry`),
		onEnqueue("a policy that only an expression can have", with(func(t *queue.Task) { t.OnTimeout = "fail: because" }), "on timeout", "must be fail or retry"),
		onEnqueue("an expression without retries", queue.Task{Retry: "true"}, "retry_expression", "needs max_retries of at least 1"),

		onEnqueue("a negative jitter", backoff(queue.Backoff{Delay: time.Second, Jitter: -0.1}), "jitter", "from 0 to 1"),
		onEnqueue("a jitter of more than 1", backoff(queue.Backoff{Delay: time.Second, Jitter: 1.01}), "jitter", "from 0 to 1"),
		onEnqueue("a jitter of NaN", backoff(queue.Backoff{Delay: time.Second, Jitter: math.NaN()}), "jitter", "from 0 to 1"),
		onEnqueue("an infinite jitter", backoff(queue.Backoff{Delay: time.Second, Jitter: math.Inf(1)}), "jitter", "from 0 to 1"),
		onEnqueue("a jitter without a delay", backoff(queue.Backoff{Jitter: 0.5}), "back-off", "needs a Delay"),
		onEnqueue("an exponential back-off without a delay", backoff(queue.Backoff{Exponential: true}), "back-off", "needs a Delay"),
		onEnqueue("a maximum without a delay", backoff(queue.Backoff{Max: time.Second}), "back-off", "needs a Delay"),
		onEnqueue("a negative back-off", backoff(queue.Backoff{Delay: -time.Second}), "back-off", "leave it out for none"),
		onEnqueue("a back-off below 1 ms", backoff(queue.Backoff{Delay: 1}), "back-off", "under 1ms"),
		onEnqueue("a negative maximum", backoff(queue.Backoff{Delay: time.Second, Max: -time.Second}), "longest back-off", "leave it out for none"),
		onEnqueue("jitter of a back-off of None", backoff(queue.Backoff{Delay: queue.None, Jitter: 0.5}), "back-off", "needs a Delay"),
		onEnqueue("a maximum of None", backoff(queue.Backoff{Delay: time.Second, Max: queue.None}), "longest back-off", "cannot be None: leave it out"),
	}
	for claim, source := range map[string]string{
		"that does not compile":          "tasks.k.code ==",
		"that is blank":                  "   ",
		"of another task":                "tasks.other.code == 1",
		"that gives a number":            "tasks.k.code + 1",
		"that loops":                     "any(1..1000000000, {# == tasks.k.code})",
		"that makes a large list":        "tasks.k.code in 1..1000000000",
		"that is huge":                   strings.Repeat("tasks.k.code == 1 or ", 1000) + "true",
		"that is deep":                   strings.Repeat("(", 400) + "true" + strings.Repeat(")", 400) + " and tasks.k.code",
		"that calls an unknown function": "now() > 1",
		"with a NUL":                     "true\x00",
		"that is not valid UTF-8":        "tasks.k.msg == '\xff'",
	} {
		rows = append(rows, onEnqueue("an expression "+claim, with(func(t *queue.Task) { t.Retry = source }), "retry expression", ""))
	}
	refused(t, rows)
}

func TestEnqueueRefusesBadLimits(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	rows := []badInput{
		onEnqueue("a warning without a deadline", queue.Task{WarnAt: 0.5}, "warn_percent", "needs a deadline: give the task a timeout"),
		onEnqueue("a grace below 1 ms", queue.Task{CancelGrace: 1}, "cancel grace", "under 1ms"),
		onEnqueue("a negative grace", queue.Task{CancelGrace: -time.Second}, "cancel grace", "leave it out for none"),
		onEnqueue("a delay of None", queue.Task{Delay: queue.None}, "delay", "cannot be None: leave it out"),
	}
	for claim, part := range map[string]float64{"a warning before the start": -0.5, "a warning at the end": 1, "a warning after the end": 80,
		"a warning too soon after the start": 0.001, "a warning of NaN": math.NaN(), "an infinite warning": math.Inf(1)} {
		rows = append(rows, onEnqueue(claim, queue.Task{Timeout: time.Minute, WarnAt: part}, "warn at", "from 0.01 to 0.99"))
	}
	refused(t, rows)
}

func TestEnqueueRefusesBadHooks(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	hook := func(claim string, h queue.Hooks, field, advice string) badInput {
		return onEnqueue("a hook "+claim, queue.Task{Hooks: h}, field, advice)
	}
	var rows []badInput
	for claim, name := range badNames {
		rows = append(rows,
			hook("of a kind "+claim, queue.Hooks{OnFailure: queue.Hook{Kind: name}}, "kind of hook failure", "must be 1 to 128 of"),
			hook("in a queue "+claim, queue.Hooks{OnCancel: queue.Hook{Kind: "k", Queue: name}}, "queue of hook cancel", "must be 1 to 128 of"))
	}
	rows = append(rows,
		hook("with a queue but no kind", queue.Hooks{OnTimeout: queue.Hook{Queue: "q"}}, "kind of hook timeout", "must be 1 to 128 of"),
		badInput{"a task with the id of a hook", func(s *scene) error {
			return s.enqueue(queue.Task{ID: s.done + "!success"})
		}, refusal.ErrInvalid, "id", notAnID},
		badInput{"a child with the id of a hook", func(s *scene) error {
			return s.enqueue(queue.Task{ID: s.running + ".child!success"})
		}, refusal.ErrInvalid, "id", notAnID},
		badInput{"a child of a hook that does not exist", func(s *scene) error {
			return s.enqueue(queue.Task{ID: s.running + "!success.1"})
		}, refusal.ErrNotFound, "!success", "no such task"})
	refused(t, rows)
}

func TestEnqueueRefusesBadScopes(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	key := func(claim string, task queue.Task, field, advice string) badInput {
		task.IdempotencyKey = "new"
		return onEnqueue(claim, task, field, advice)
	}
	refused(t, []badInput{
		onEnqueue("a scope without a key", queue.Task{IdempotencyScope: queue.UntilStarted}, "idempotency scope", "needs an idempotency key"),
		onEnqueue("a window without a key", queue.Task{IdempotencyWindow: time.Second}, "idempotency scope", "needs an idempotency key"),
		key("an unknown scope", queue.Task{IdempotencyScope: "always"}, "idempotency scope", "must be UntilStarted, UntilFinished, ForWindow"),
		key("a window without its scope", queue.Task{IdempotencyWindow: time.Second}, "idempotency window", "needs IdempotencyScope ForWindow"),
		key("a scope without its window", queue.Task{IdempotencyScope: queue.ForWindow}, "idempotency window", "is required for IdempotencyScope ForWindow"),
		key("a window of None", queue.Task{IdempotencyScope: queue.ForWindow, IdempotencyWindow: queue.None}, "idempotency window", "cannot be None"),
		key("a window below 1 ms", queue.Task{IdempotencyScope: queue.ForWindow, IdempotencyWindow: 1}, "idempotency window", "under 1ms"),
		key("a window shorter than the timeout", queue.Task{IdempotencyScope: queue.ForWindow, IdempotencyWindow: time.Second, Timeout: 2 * time.Second},
			"idempotency window", "a second task could start beside the first: make it longer"),
		badInput{"a window shorter than the kind's timeout", func(s *scene) error {
			return s.enqueue(queue.Task{Kind: "defined", IdempotencyKey: "new", IdempotencyScope: queue.ForWindow, IdempotencyWindow: time.Second})
		}, refusal.ErrInvalid, "idempotency_window_ms", "make it longer"},
		onEnqueue("the retry of an invalid id", queue.Task{RetryOf: "nonsense"}, "retry of", "is not a task's id"),
	})
}

func TestEnqueueRefusesBadPromises(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	rows := []badInput{
		onEnqueue("a timer that is also a promise", queue.Task{Promise: true, Timer: true, Delay: time.Second}, "timer", "leave Promise out"),
		onEnqueue("a timer without a time", queue.Task{Timer: true}, "timer", "needs Delay or StartAt"),
		onEnqueue("a promise with a delay", queue.Task{Promise: true, Delay: time.Second}, "promise", "leave Delay and StartAt out, or make it a Timer"),
		onEnqueue("a timer after its deadline", queue.Task{Timer: true, Delay: 2 * time.Second, Timeout: time.Second}, "delay_ms", "start earlier, or give it more time"),
	}
	for claim, task := range map[string]queue.Task{
		"retries":            {MaxRetries: 1},
		"a back-off":         {Backoff: queue.Backoff{Delay: time.Second}},
		"an expression":      {MaxRetries: 1, Retry: "true"},
		"a policy":           {OnTimeout: queue.OnTimeoutFail},
		"an attempt's limit": {AttemptTimeout: time.Second},
		"a line's limit":     {QueueTimeout: time.Second},
		"a grace":            {CancelGrace: time.Second},
		"a priority":         {Priority: 1},
	} {
		promise, timer := task, task
		promise.Promise, timer.Timer, timer.Delay = true, true, time.Second
		rows = append(rows,
			onEnqueue("a promise with "+claim, promise, "promise", "is not run by a worker"),
			onEnqueue("a timer with "+claim, timer, "promise", "is not run by a worker"))
	}
	refused(t, rows)
}

func TestDefineKindRefusesBadDefaults(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	define := func(claim, kind string, d queue.Defaults, field, advice string) badInput {
		return badInput{claim, func(s *scene) error { return s.q.DefineKind(context.Background(), kind, d) }, refusal.ErrInvalid, field, advice}
	}
	rows := []badInput{
		define("a negative timeout", "k", queue.Defaults{Timeout: -time.Second}, "timeout", "leave it out for none"),
		define("a retention below 1 ms", "k", queue.Defaults{Retention: 1}, "retention", "under 1ms"),
		define("-2 retries", "k", queue.Defaults{MaxRetries: -2}, "max retries", "must not be negative"),
		define("a retry of timeouts without retries", "k", queue.Defaults{OnTimeout: queue.OnTimeoutRetry}, "on_timeout", "needs max_retries of at least 1"),
		define("an expression without retries", "k", queue.Defaults{Retry: "true"}, "retry_expression", "needs max_retries of at least 1"),
		define("an expression of another kind", "k", queue.Defaults{Retry: "tasks.x.code == 1", MaxRetries: 1}, "retry expression", "write tasks.k"),
		define("a warning without a timeout", "k", queue.Defaults{WarnAt: 0.8}, "warn_percent", "needs a timeout_ms"),
		define("a warning at the end", "k", queue.Defaults{Timeout: time.Second, WarnAt: 1}, "warn at", "from 0.01 to 0.99"),
		define("a jitter without a delay", "k", queue.Defaults{Backoff: queue.Backoff{Jitter: 1}}, "back-off", "needs a Delay"),
		define("a limit in line of None", "k", queue.Defaults{QueueTimeout: queue.None}, "queue_timeout_ms", "cannot be none: leave it out"),
		define("an attempt's limit of None", "k", queue.Defaults{AttemptTimeout: queue.None}, "attempt_timeout_ms", "leave it out"),
	}
	for claim, name := range badNames {
		rows = append(rows, define("a kind "+claim, name, queue.Defaults{Timeout: time.Second}, "kind", "must be 1 to 128 of"))
	}
	refused(t, rows)
}
