package field

const most = 1 << 53

const hookHelp = `; "KIND QUEUE" if its queue is not default`

// All has each field of a task.
var All = []Field{
	{Name: "kind", Go: "Kind"},
	{Name: "id", Go: "ID", Help: "the id of the task: the partition, a dash, letters and digits"},
	{Name: "queue", Go: "Queue", Help: "the queue"},
	{Name: "payload", Go: "Payload", Type: Object},
	{Name: "headers", Go: "Headers", Type: Object},
	{Name: "role", Type: Word, Words: []string{"promise", "timer"}},
	{Name: "priority", Go: "Priority", Type: Number, Most: 3, Help: "0 to 3; 3 is claimed first"},

	{Name: "timeout_ms", Go: "Timeout", Type: Span, By: Kind, Help: "how long after its creation a task ends at the latest, such as 30s; or none, so that no default applies"},
	{Name: "default_timeout_ms", Go: "DefaultTimeout", Type: Span, By: Client},
	{Name: "deadline_at", Go: "Deadline", Type: Instant, Flag: "deadline", Help: "the task ends at this instant at the latest, such as 2026-11-22T10:00:00Z"},
	{Name: "budget_percent", Go: "Budget", Type: Percent, Least: 1, Most: 100},
	{Name: "delay_ms", Go: "Delay", Type: Span, Help: "the task starts this long from now at the earliest"},
	{Name: "available_at", Go: "StartAt", Type: Instant, Flag: "at", Help: "the task starts at this instant at the earliest"},
	{Name: "queue_timeout_ms", Go: "QueueTimeout", Type: Span, By: Kind, Help: "how long a task can be in line, each time"},
	{Name: "attempt_timeout_ms", Go: "AttemptTimeout", Type: Span, By: Kind, Help: "how long one attempt can take"},
	{Name: "on_timeout", Go: "OnTimeout", Type: Word, By: Kind, Words: []string{"fail", "retry"},
		Help: "what happens when an attempt takes too long: fail or retry (default: fail)"},
	{Name: "on_deadline", Go: "OnDeadline", Type: Word, By: Kind, Words: []string{"cancel_all", "fail"},
		Help: "how a task with children ends at its deadline: cancel_all or fail (default: cancel_all)"},
	{Name: "warn_percent", Go: "WarnAt", Type: Percent, By: Kind, Least: 1, Most: 99, Help: "after how much of its time an event warns of its deadline, 1 to 99"},
	{Name: "cancel_grace_ms", Go: "CancelGrace", Type: Span, By: Kind, Help: "how long a handler may go on after its task is cancelled"},
	{Name: "timeout_grace_ms", Go: "TimeoutGrace", Type: Span, By: Kind, Help: "how long before its time is up the context of a handler ends"},

	{Name: "max_retries", Go: "MaxRetries", Type: Number, By: Kind, Most: most, Flag: "retries", Help: "how often a failed attempt is retried"},
	{Name: "backoff_ms", Go: "Backoff.Delay", Type: Span, By: Kind, ZeroIsNone: true, JSON: "backoff_delay_ms",
		Help: "the time before the first retry; 0 retries at once (default: 1s, doubled up to 10m, with jitter 20, and half of the time for ten retries)"},
	{Name: "backoff_max_ms", Go: "Backoff.Max", Type: Span, By: Kind, Help: "the longest time between attempts (default: 1d, if a delay is given)"},
	{Name: "backoff", Go: "Backoff.Exponential", Type: Word, By: Kind, Words: []string{"constant", "exponential"},
		Help: "how the time between attempts grows: constant or exponential; constant if only a delay is given"},
	{Name: "jitter", Go: "Backoff.Jitter", Type: Percent, By: Kind, Most: 100, Help: "how many percent of the time between attempts can be left out at random"},
	{Name: "retry_expression", Go: "Retry", By: Kind, Help: "the expression that decides whether a failed attempt is repeated"},

	{Name: "result_type", Go: "ResultType", By: Kind, Help: "the JSON that a task can complete with, such as bool or '{approved: bool, note: string?}' (default: any bytes)"},

	{Name: "retention_ms", Go: "Retention", Type: Span, By: Kind, Help: "how long the record is kept after the end, at least 1m"},
	{Name: "hook_success", Go: "Hooks.OnSuccess", Type: Hook, By: Kind, Help: "the kind of the task that is enqueued when a task completes" + hookHelp},
	{Name: "hook_failure", Go: "Hooks.OnFailure", Type: Hook, By: Kind, Help: "the kind of the task that is enqueued when a task fails" + hookHelp},
	{Name: "hook_timeout", Go: "Hooks.OnTimeout", Type: Hook, By: Kind, Help: "the kind of the task that is enqueued when a task times out (without it, as --hook-failure says)" + hookHelp},
	{Name: "hook_cancel", Go: "Hooks.OnCancel", Type: Hook, By: Kind, Help: "the kind of the task that is enqueued when a task is cancelled" + hookHelp},

	{Name: "idempotency_key", Go: "IdempotencyKey", Help: "the task is stored once for this key"},
	{Name: "idempotency_scope", Go: "IdempotencyScope", Type: Word, Words: []string{"started", "finished", "window"}},
	{Name: "idempotency_window_ms", Go: "IdempotencyWindow", Type: Span},
	{Name: "retry_of", Go: "RetryOf"},
	{Name: "node", Go: "Node", Type: Object, By: Client},
	{Name: "enqueued_by", By: Client},
}
