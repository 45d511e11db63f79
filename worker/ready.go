package worker

import (
	"context"
	"errors"
	"fmt"
)

// ready says what of a worker or its context is nil.
func (w *Worker) ready(ctx context.Context) error {
	if w == nil || w.registered == nil {
		return errors.New("worker: it is nil or empty: use worker.New")
	}
	if err := w.q.Ready(ctx); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// made panics if w is nil or empty. It is for functions that return no error.
func (w *Worker) made() *Worker {
	if w == nil || w.registered == nil {
		panic("worker: a *Worker is nil or empty: use worker.New")
	}
	return w
}
