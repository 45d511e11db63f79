package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// DiffersError is the error of Create for a namespace that exists with different settings. Nothing was changed.
type DiffersError struct {
	Name        string
	Differences []string // "partitions: it has 4, not 8"
}

// Error names the settings that differ.
func (e *DiffersError) Error() string {
	return fmt.Sprintf("the namespace %s exists with other settings, and nothing was changed: %s. The number of partitions is fixed; `curfew namespace set %s` changes the other settings",
		e.Name, strings.Join(e.Differences, "; "), e.Name)
}

// Create creates a namespace, and reports whether it did. Settings that are zero get the defaults of queue.Config. If the namespace exists,
// Create compares it with the settings that are not zero, and changes nothing: if they differ, it returns a *DiffersError.
// It creates partitions that are missing, since an earlier Create was interrupted.
func (s *Server) Create(ctx context.Context, name string, wanted Settings) (n Namespace, created bool, err error) {
	n, err = s.Namespace(ctx, name)
	created = errors.Is(err, refusal.ErrNoNamespace)
	if !created {
		if err == nil {
			err = n.Err
		}
		if err == nil {
			err = s.fits(ctx, n, wanted)
		}
		if err != nil || len(n.Missing) == 0 {
			return n, false, err
		}
		wanted = n.Settings // the partitions that are missing must be like the others
	}
	// Access produce, since it needs no more rights than others, and loads no functions.
	q, err := queue.Open(ctx, s.rdb, queue.Config{Namespace: name, Partitions: max(wanted.Partitions, 1), Events: queue.EventLevel(wanted.Events),
		EventMiB: wanted.EventMiB, Figures: wanted.Figures, Access: queue.AccessProduce, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		if err = q.Configure(ctx, queue.Settings{DefaultTimeout: wanted.DefaultTimeout}); err != nil {
			err = fmt.Errorf("the namespace %s is created, and its default timeout is not set: run `curfew namespace set %s --default-timeout %v`: %w",
				name, name, timeoutText(wanted.DefaultTimeout), err)
		}
	}
	if err != nil {
		return Namespace{}, false, err
	}
	if n, err = s.Namespace(ctx, name); err != nil {
		return Namespace{}, false, err
	}
	return n, created, s.fits(ctx, n, wanted) // another program can have created it at the same time
}

// fits returns an error if a namespace cannot be used, or has other settings than those that are not zero.
func (s *Server) fits(ctx context.Context, n Namespace, wanted Settings) error {
	if n.Version == Removing {
		return &removingError{n.Name}
	}
	if !n.Known() {
		return fmt.Errorf("the namespace %s exists, and its records have version %s, which this program does not know: use a release of curfew that works with them", n.Name, n.Version)
	}
	roots, err := s.roots(ctx, n.Name)
	if err != nil {
		return err
	}
	differ := map[string]bool{}
	e := &DiffersError{Name: n.Name}
	add := func(what string, has, want any) {
		if text := fmt.Sprintf("%s: it has %v, not %v", what, has, want); !differ[text] {
			differ[text] = true
			e.Differences = append(e.Differences, text)
		}
	}
	for _, r := range roots {
		if wanted.Partitions != 0 && r.Partitions != wanted.Partitions {
			add("partitions", r.Partitions, wanted.Partitions)
		}
		if wanted.Events != "" && r.Events != wanted.Events {
			add("events", r.Events, wanted.Events)
		}
		if wanted.EventMiB != 0 && r.EventMiB != wanted.EventMiB {
			add("MiB of events", r.EventMiB, wanted.EventMiB)
		}
		if wanted.Figures != "" && r.Figures != wanted.Figures {
			add("figures", r.Figures, wanted.Figures)
		}
		if wanted.DefaultTimeout != 0 && r.DefaultTimeout != max(wanted.DefaultTimeout, 0) { // queue.None is negative
			add("default timeout", timeoutText(r.DefaultTimeout), timeoutText(wanted.DefaultTimeout))
		}
	}
	if len(e.Differences) > 0 {
		return e
	}
	return nil
}

func timeoutText(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	return duration.Duration(d).String()
}

// removingError is the error for a namespace whose removal has begun and is not finished.
type removingError struct{ name string }

func (e *removingError) Error() string {
	return fmt.Sprintf("the namespace %s is being removed: run `curfew namespace rm %s` to finish that", e.name, e.name)
}
