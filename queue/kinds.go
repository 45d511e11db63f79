package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Defaults are what the tasks of a kind have where their producer says nothing. They
// are stored in the namespace, so that producers in any language get them. The fields
// mean what those of a [Task] do.
type Defaults struct {
	Timeout, QueueTimeout, AttemptTimeout time.Duration
	OnTimeout                             OnTimeout
	OnDeadline                            OnDeadline
	WarnAt                                float64
	CancelGrace, TimeoutGrace             time.Duration
	MaxRetries                            int
	Backoff                               Backoff
	Retry                                 string
	Retention                             time.Duration
}

// DefineKind stores the defaults of a kind, in place of those it had. They apply to
// tasks that are enqueued from then on, and not to those that are there; the zero Defaults remove them. Workers store
// theirs when they start. A producer that may start before them calls DefineKind before it enqueues: it may be
// called any number of times. Every partition is told.
// If it returns an error of a call, some may hold the new ones already: define them again.
func (q *Queue) DefineKind(ctx context.Context, kind string, d Defaults) error {
	if err := q.ready(ctx); err != nil {
		return refusal.Failed("define kind", "", err)
	}
	t := Task{Kind: kind, Timeout: d.Timeout, QueueTimeout: d.QueueTimeout, AttemptTimeout: d.AttemptTimeout,
		OnTimeout: d.OnTimeout, OnDeadline: d.OnDeadline, WarnAt: d.WarnAt, CancelGrace: d.CancelGrace, TimeoutGrace: d.TimeoutGrace, MaxRetries: d.MaxRetries,
		Backoff: d.Backoff, Retry: d.Retry, Retention: d.Retention}
	if err := t.check(q.config.MaxBytes); err != nil {
		return refusal.Failed("define a kind", "", err) // not by its name, which may be what is wrong
	}
	args := []any{kind}
	t.policyFields(func(name string, value any) {
		if name != "backoff_max_ms" || value != "none" { // which a kind says by leaving it out
			args = append(args, name, value)
		}
	})
	for p := range q.Partitions() {
		words, err := worded(q.engine.Call(ctx, p, "define", args...))
		if err == nil && engine.Text(words[0]) == "INVALID" {
			err = refusal.Invalid(engine.Text(words[1]), "%s", engine.Text(words[2]))
		}
		if err != nil {
			return refusal.Failed("define "+kind, "", err)
		}
	}
	return nil
}

// Kinds are the defaults of kinds as they are stored: by kind, then by field.
func (q *Queue) Kinds(ctx context.Context) (map[string]map[string]string, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("kinds", "", err)
	}
	root, err := q.engine.Fields(ctx, q.Root(0))
	if err != nil {
		return nil, refusal.Failed("kinds", "", q.engine.Unread(ctx, 0, err))
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
			kinds[kind][name] = value
		}
	}
	return kinds, nil
}

// worded is an answer whose first word says what it is; INVALID has two more.
func worded(reply any, err error) ([]any, error) {
	words, err := engine.List(reply, err, 1)
	if err == nil && engine.Text(words[0]) == "INVALID" && len(words) < 3 {
		err = fmt.Errorf("unexpected answer %.100v", words)
	}
	return words, err
}
