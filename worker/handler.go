package worker

import (
	"context"
	"encoding/json"
	"fmt"
)

// Handler runs a task: payload in, result or error out. ctx ends when the task must
// stop; Info(ctx) tells what task it is. An error is a failed attempt, which is
// repeated as long as the task has retries; RetryAfter, Discard, Fail and Release
// make errors that say something else. The result of a failed attempt is not kept; the
// task's retry expression sees it, as outputs.parameters.
type Handler func(ctx context.Context, payload []byte) ([]byte, error)

// Handle registers a handler that takes and gives JSON. In or Out may be []byte,
// which are passed as they are. A task without a payload is the zero value of In; a
// payload that is no JSON of In fails its task for good, since it would never be.
//
// It panics when the kind has a handler already, and after Run.
func Handle[In, Out any](w *Worker, kind string, handle func(ctx context.Context, in In) (Out, error)) {
	w.HandleRaw(kind, func(ctx context.Context, payload []byte) ([]byte, error) {
		in, err := decode[In](payload)
		if err != nil {
			return nil, Discard(fmt.Errorf("the payload is not what kind %s takes: %w", kind, err))
		}
		out, err := handle(ctx, in)
		result, unfit := encode(out)
		if err == nil && unfit != nil {
			return nil, Discard(fmt.Errorf("the result of kind %s has no JSON: %w", kind, unfit))
		}
		return result, err
	})
}

func decode[In any](payload []byte) (in In, err error) {
	if raw, ok := any(&in).(*[]byte); ok {
		*raw = payload
		return in, nil
	}
	if len(payload) == 0 {
		return in, nil
	}
	err = json.Unmarshal(payload, &in)
	return in, err
}

func encode[Out any](out Out) ([]byte, error) {
	if raw, ok := any(out).([]byte); ok {
		return raw, nil
	}
	return json.Marshal(out)
}

// HandleRaw registers a handler for a kind. It panics when the kind has one
// already, and after Run.
func (w *Worker) HandleRaw(kind string, handle Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ran:
		panic(fmt.Sprintf("worker: register the handler of kind %q before Run", kind))
	case kind == "":
		panic("worker: a handler needs a kind")
	case handle == nil:
		panic(fmt.Sprintf("worker: the handler of kind %q is nil", kind))
	case w.registered[kind] != nil:
		panic(fmt.Sprintf("worker: kind %q has a handler already", kind))
	}
	w.registered[kind] = handle
}

// Use puts middleware around all handlers, those that are registered later
// included. The first one is the outermost. An agent that waits returns ErrSuspended, which
// is no failure, and is called again. It panics after Run.
func (w *Worker) Use(middleware ...func(next Handler) Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		panic("worker: call Use before Run")
	}
	w.middleware = append(w.middleware, middleware...)
}

// wrapped are the handlers with their middleware.
func (w *Worker) wrapped() map[string]Handler {
	handlers := make(map[string]Handler, len(w.registered))
	for kind, handle := range w.registered {
		for i := len(w.middleware) - 1; i >= 0; i-- {
			handle = w.middleware[i](handle)
		}
		handlers[kind] = handle
	}
	return handlers
}
