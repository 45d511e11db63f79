package engine

import (
	"context"
	"slices"
	"time"
)

// Observer is notified of the calls and sweeps of this process. A field that is nil is not called. The functions are called by the
// goroutine that made the call, so they must be quick.
type Observer struct {
	// Called is called after each call that Call made, with its repeats. err is the error that Call returns.
	Called func(ctx context.Context, partition int, script string, took time.Duration, err error)
	// ReadOnly is called after each try of a call that Redis refuses, because it has become a replica.
	ReadOnly func(partition int)
	// Swept is called after each sweep of a reaper. full means that more is due than one sweep may do.
	Swept func(full bool)
}

// Observe adds an observer. It cannot be removed.
func (e *Engine) Observe(o Observer) {
	for {
		old := e.observers.Load()
		var observers []Observer
		if old != nil {
			observers = slices.Clone(*old)
		}
		observers = append(observers, o)
		if e.observers.CompareAndSwap(old, &observers) {
			return
		}
	}
}

// called notifies the observers of a call.
func called(ctx context.Context, observers []Observer, partition int, script string, start time.Time, err error) {
	took := time.Since(start)
	for _, o := range observers {
		if o.Called != nil {
			o.Called(ctx, partition, script, took, err)
		}
	}
}

// readOnly notifies the observers of a write that a replica has refused.
func (e *Engine) readOnly(partition int) {
	if observers := e.observers.Load(); observers != nil {
		for _, o := range *observers {
			if o.ReadOnly != nil {
				o.ReadOnly(partition)
			}
		}
	}
}

// Swept notifies the observers of a sweep.
func (e *Engine) Swept(full bool) {
	if observers := e.observers.Load(); observers != nil {
		for _, o := range *observers {
			if o.Swept != nil {
				o.Swept(full)
			}
		}
	}
}
