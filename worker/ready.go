package worker

import (
	"context"
	"errors"
	"fmt"
)

// ready returns an error if the worker or ctx is nil, or the worker was not made by New.
func (w *Worker) ready(ctx context.Context) error {
	if w == nil || w.registered == nil {
		return errors.New("worker: the *Worker is nil or empty: use worker.New")
	}
	if err := w.q.Ready(ctx); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// mustBeMade panics if w is nil or empty, and otherwise returns it. It is for functions that cannot
// return an error.
func (w *Worker) mustBeMade() *Worker {
	if w == nil || w.registered == nil {
		panic("worker: the *Worker is nil or empty: use worker.New")
	}
	return w
}
