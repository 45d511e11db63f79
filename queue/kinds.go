package queue

import (
	"context"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Defaults are the settings that a task of a kind uses if its producer does not set them. They are
// stored in the namespace, so they apply to producers in any language. [Task] describes the fields.
// Timeout counts from the earliest start of a task, and not from now as that of a Task. A Timeout of
// [None] keeps the default timeout of the namespace from the tasks of the kind. The Delay of Backoff can
// be None too, the other times cannot: leave them out.
type Defaults struct {
	Timeout, QueueTimeout, AttemptTimeout time.Duration
	OnTimeout                             OnTimeout
	OnDeadline                            OnDeadline
	WarnAt                                float64
	CancelGrace, TimeoutGrace             time.Duration
	MaxRetries                            int
	Backoff                               Backoff
	Retry                                 string
	ResultType                            string
	Retention                             time.Duration
	// Hooks are the hooks of tasks whose producer sets none for the same event. A hook itself has no
	// hooks, so they do not apply to a task that is a hook.
	Hooks Hooks
}

// DefineKind stores the defaults of a kind, and replaces earlier ones. They apply to tasks that are
// enqueued later, not to existing tasks. The zero Defaults remove them. Workers define their kinds
// when they start. A producer that can start before the workers calls [Queue.EnsureKind] before it
// enqueues.
//
// DefineKind makes a call to each partition. If it returns the error of a call, some partitions can
// have the new defaults already: call it again. Any number of repeats has the same effect.
func (q *Queue) DefineKind(ctx context.Context, kind string, d Defaults) error {
	if err := q.ready(ctx); err != nil {
		return refusal.Failed("define kind", "", err)
	}
	args, err := q.defaultsOf(kind, d)
	if err != nil {
		return refusal.Failed("define a kind", "", err) // does not quote the kind, because it may be the invalid value
	}
	for p := range q.Partitions() {
		if _, err := engine.Words(q.engine.Call(ctx, p, "define", args...)); err != nil {
			return refusal.Failed("define "+kind, "", partly(p, err))
		}
	}
	q.kinds.defined(kind, d)
	return nil
}

// defaultsOf returns the arguments of the call that defines a kind. It checks the defaults as those
// of a task.
func (q *Queue) defaultsOf(kind string, d Defaults) ([]any, error) {
	t := d.task(kind)
	if err := t.check(q.config.MaxBytes); err != nil {
		return nil, err
	}
	args := []any{kind}
	t.policyFields(func(name string, value any) {
		switch {
		case value == "none" && name == "backoff_max_ms": // a kind without the field has no maximum
		case value == "none" && name == "backoff_ms": // without the field it would be the usual back-off
			args = append(args, name, 0)
		default:
			args = append(args, name, value)
		}
	})
	return args, nil
}

// task returns a task that has the defaults as its own settings.
func (d *Defaults) task(kind string) Task {
	return Task{Kind: kind, Timeout: d.Timeout, QueueTimeout: d.QueueTimeout, AttemptTimeout: d.AttemptTimeout,
		OnTimeout: d.OnTimeout, OnDeadline: d.OnDeadline, WarnAt: d.WarnAt, CancelGrace: d.CancelGrace, TimeoutGrace: d.TimeoutGrace, MaxRetries: d.MaxRetries,
		Backoff: d.Backoff, Retry: d.Retry, ResultType: d.ResultType, Retention: d.Retention, Hooks: d.Hooks}
}

// Kinds returns the stored defaults of all kinds: by kind, then by field.
func (q *Queue) Kinds(ctx context.Context) (map[string]map[string]string, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("kinds", "", err)
	}
	root, err := q.engine.Fields(ctx, q.Root(0))
	if err != nil {
		return nil, refusal.Failed("kinds", "", q.engine.Unread(ctx, 0, err))
	}
	if version, stored := root["version"]; stored {
		if err := engine.OtherVersion(version, q.engine.Library().Versions()); err != nil {
			return nil, refusal.Failed("kinds", "", err)
		}
	}
	kinds := map[string]map[string]string{}
	for field, lines := range root {
		kind, ok := strings.CutPrefix(field, "kind:")
		if !ok {
			continue
		}
		kinds[kind] = map[string]string{}
		for line := range strings.SplitSeq(lines, "\n") {
			name, value, _ := strings.Cut(line, "=")
			if name == "timeout" { // lua/check/fields.lua stores none under this name
				name = "timeout_ms"
			}
			kinds[kind][name] = value
		}
	}
	return kinds, nil
}
