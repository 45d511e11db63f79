package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
)

// Handler runs a task: it takes the payload, and returns the result or an error. ctx ends when the
// handler must stop; Info(ctx) describes the task. An error means that the attempt has failed. The
// task then runs again if a retry remains. RetryAfter, Discard, Fail and Release return errors with
// another meaning. The result of a failed attempt is not kept, but the task's retry expression can
// read it as outputs.parameters.
type Handler func(ctx context.Context, payload []byte) ([]byte, error)

// Handle registers a handler for a kind. It decodes the payload from JSON as In, and encodes the
// result as JSON. If In or Out is []byte, the bytes are passed unchanged. A task without a payload
// gets the zero value of In. If the payload cannot be decoded, or the result cannot be encoded, the
// task fails and is not retried.
//
// Handle panics if the kind has a handler already, if an argument is nil or empty, and after Run.
func Handle[In, Out any](w *Worker, kind string, handle func(ctx context.Context, in In) (Out, error)) {
	if handle == nil || w == nil {
		w.HandleRaw(kind, nil) // panics
	}
	w.HandleRaw(kind, func(ctx context.Context, payload []byte) ([]byte, error) {
		in, err := decode[In](payload)
		if err != nil {
			return nil, Discard(fmt.Errorf("cannot decode the payload of kind %s: %w", kind, jsonx.Plain(err)))
		}
		out, err := handle(ctx, in)
		result, encodeErr := encode(out)
		if err == nil && encodeErr != nil {
			return nil, Discard(fmt.Errorf("cannot encode the result of kind %s as JSON: %w", kind, jsonx.Plain(encodeErr)))
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
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // people read results, and no browser takes them for a page
	err := encoder.Encode(out)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// HandleRaw registers a handler for a kind. A kind that ends in * is a pattern for all kinds with
// this prefix, for example "mail.*". A kind without a pattern has precedence, and then the longest
// prefix. HandleRaw panics if the kind has a handler already, if an argument is nil or empty, and
// after Run.
func (w *Worker) HandleRaw(kind string, handle Handler) {
	w.mustBeMade()
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

// handlers maps kinds, and prefixes with a *, to handlers.
type handlers map[string]Handler

// find returns the handler for a kind, nil if there is none.
func (h handlers) find(kind string) Handler { return h[h.pattern(kind)] }

// pattern returns the registered kind whose handler a kind has, "" if it has none. It tries the kind
// itself, and then its prefixes from the longest to the empty one.
func (h handlers) pattern(kind string) string {
	if h[kind] != nil {
		return kind
	}
	for n := len(kind); n >= 0; n-- {
		if pattern := kind[:n] + "*"; h[pattern] != nil {
			return pattern
		}
	}
	return ""
}

// MarkAgent declares that the handler of a kind is an agent's, which Rehearse may call. Package
// agentwait calls it.
func (w *Worker) MarkAgent(kind string) {
	w.mustBeMade()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agents[kind] = true
}

// Rehearse calls the handler of an agent's kind, with its middleware, and returns the outcome that
// Run would report. It claims and reports nothing. Package agentwait replays recordings with it. If
// the kind has no handler here, or its handler is not an agent's, Rehearse returns an error.
func (w *Worker) Rehearse(ctx context.Context, c queue.Claim) (queue.Outcome, error) {
	if err := w.ready(ctx); err != nil {
		return queue.Outcome{}, err
	}
	w.mu.Lock()
	handlers := w.wrapped()
	pattern := handlers.pattern(c.Kind)
	agent := w.agents[pattern]
	w.mu.Unlock()
	switch {
	case pattern == "":
		return queue.Outcome{}, fmt.Errorf("worker: kind %q has no handler here", c.Kind)
	case !agent:
		return queue.Outcome{}, fmt.Errorf("worker: the handler of kind %q is not an agent's any more", c.Kind)
	}
	a := newAttempt(ctx, newPartition(w, c.Partition), w.id, handlers[pattern], &c, time.Now())
	a.runHandler()
	return a.outcome, nil
}

// Use adds middleware around all handlers, including those that are registered later. The first
// middleware is the outermost. Middleware must return ErrSuspended unchanged: the handler has not
// failed, because its agent waits and runs again. Use panics if a middleware is nil, and after Run.
func (w *Worker) Use(middleware ...func(next Handler) Handler) {
	w.mustBeMade()
	for i, m := range middleware {
		if m == nil {
			panic(fmt.Sprintf("worker: middleware %d is nil", i))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		panic("worker: call Use before Run")
	}
	w.middleware = append(w.middleware, middleware...)
}

// wrapped returns the handlers inside their middleware.
func (w *Worker) wrapped() handlers {
	outer := make(handlers, len(w.registered))
	for kind, handle := range w.registered {
		for i := len(w.middleware) - 1; i >= 0; i-- {
			handle = w.middleware[i](handle)
		}
		outer[kind] = handle
	}
	return outer
}
