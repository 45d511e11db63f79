package audit

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// looks is how often to try to read a task twice without a change in between.
const looks = 8

// confirm reports a finding if look returns it twice while no task that concerns the subject changes. look reads the
// subjects, and returns its snapshot and its findings.
func (w *walk) confirm(ctx context.Context, suspects map[string]bool, look func(subjects []string) (*Snapshot, []Finding, error)) error {
	suspected, first := slices.Sorted(maps.Keys(suspects)), map[string][]Finding{}
	for try := 0; try < looks && len(suspected) > 0; try++ {
		if err := rest(ctx, try); err != nil {
			return err
		}
		s, findings, err := look(suspected)
		if err != nil {
			return err
		}
		moved, err := w.moved(ctx, s)
		if err != nil {
			return err
		}
		bySubject := map[string][]Finding{}
		for _, f := range findings {
			subject := strings.TrimPrefix(f.Subject, "task:")
			bySubject[subject] = append(bySubject[subject], f)
		}
		suspected = slices.DeleteFunc(suspected, func(subject string) bool {
			before, seen := first[subject]
			if moved(subject) {
				return false
			}
			first[subject] = bySubject[subject]
			for _, f := range bySubject[subject] {
				if seen && slices.Contains(before, f) {
					w.findings = append(w.findings, f)
				}
			}
			return seen || len(bySubject[subject]) == 0
		})
	}
	return nil
}

// moved reads the tasks of s again. The function that it returns reports whether a task that concerns the
// subject has changed: the task itself, an owner, a child, or the task of an idempotency key.
func (w *walk) moved(ctx context.Context, s *Snapshot) (func(subject string) bool, error) {
	reread := newSnapshot()
	if err := w.readTasks(ctx, reread, slices.Collect(maps.Keys(s.Tasks))); err != nil {
		return nil, err
	}
	var changed []string
	for id, t := range s.Tasks {
		if !maps.Equal(t, reread.Tasks[id]) {
			changed = append(changed, id)
		}
	}
	return func(subject string) bool {
		if value, key := s.Hashes["idem"][subject]; key {
			subject, _, _ = strings.Cut(value, " ")
		}
		return slices.ContainsFunc(changed, func(id string) bool {
			return strings.HasPrefix(id, subject) || strings.HasPrefix(subject, id)
		})
	}, nil
}

// rest waits, so that calls that are in progress can end.
func rest(ctx context.Context, try int) error {
	if try == 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(try) * 5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
