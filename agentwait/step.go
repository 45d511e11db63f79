package agentwait

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/jsonerr"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Step runs something with an effect once, and remembers its result: a replay returns
// that. A worker that is told to stop still writes the result. Only a step whose result
// could not be written, since the process crashed, lost the agent, or was without Redis at its
// end, runs again: give the effect a key of its own, drawn from Rand before the step, where
// that matters.
//
// An error is remembered if the handler goes on after it: as soon as anything else of the
// agent is called. If the handler returns, the step runs again with the agent's next
// attempt. In each run the error is what can be remembered of it: its text, what
// worker.RetryAfter, Discard, Fail and Release say of the task, and whether it is a
// context.DeadlineExceeded or context.Canceled. So never branch on errors.Is or errors.As of
// a step's error otherwise: return a value for that. A panic is remembered as an error is,
// and is a panic with its text in the replay. An error after the end of the agent's own
// context is returned as it is, and nothing is remembered.
//
// A result that has no JSON, or is larger than queue.Config.MaxBytes, is a failure that is
// remembered at once, since the effect was had.
//
// The function must not use the agent, except as its context: that ends the agent as FAILED.
func Step[T any](a *Agent, name string, do func(ctx context.Context) (T, error)) (v T, err error) {
	if err := a.barred(); err != nil {
		return v, err
	}
	if strings.ContainsAny(name, "\n\r") || name == "" || len(name) > 128 {
		return v, fmt.Errorf("%w: the name of a step, %s, must be one line of 1 to 128 bytes", refusal.ErrInvalid, clip(name))
	}
	if do == nil {
		return v, fmt.Errorf("%w: the function of the step %s is nil", refusal.ErrInvalid, clip(name))
	}
	number, entry, ok := a.remembered()
	if ok {
		return replayed[T](a, name, entry)
	}
	// What the step may have been given by Rand or Now must be the same if it runs again.
	if err := a.write(); err != nil {
		return v, err
	}
	if a.Err() != nil { // nothing is begun any more
		return v, a.trouble(context.Cause(a))
	}
	done, err := perform(a, number, name, do)
	if err != nil {
		return v, err
	}
	text, unfit := a.storable(name, done)
	if unfit != nil {
		unfit = a.failed(number, name, failureOf(worker.Discard(unfit)))
	} else {
		a.record(number, append([]byte("step "+name+"\n"), text...))
	}
	if err := a.insist(); err != nil {
		return v, err
	}
	if unfit != nil {
		return v, unfit
	}
	return decodeStep[T](text) // as the replay will see it
}

// perform calls the function of a step. What it fails of is not written now: if that is
// what the handler returns, the step is to run again.
func perform[T any](a *Agent, number int64, name string, do func(ctx context.Context) (T, error)) (v T, err error) {
	a.inside = name
	defer func() {
		a.inside = ""
		if p := recover(); p != nil {
			f := &failure{Panic: true, text: fmt.Sprint(p)}
			if a.gone == nil && a.Err() == nil {
				f = a.failed(number, name, f)
			}
			panic(f.text) // within the defer, so that the stack is still that of the first panic
		}
	}()
	v, err = do(a)
	switch {
	case a.gone != nil: // it used the agent
		return v, a.gone
	case err != nil && a.Err() != nil: // the end of the attempt, of which this says nothing
		a.gone = a.Err()
		return v, err
	case err != nil:
		return v, a.failed(number, name, failureOf(err))
	}
	return v, nil
}

// replayed is what a step came to before.
func replayed[T any](a *Agent, name, entry string) (v T, err error) {
	switch line, text, _ := strings.Cut(entry, "\n"); line {
	case "step " + name:
		return decodeStep[T]([]byte(text))
	case "failed " + name:
		f := readFailure(text)
		if f.Panic {
			panic(f.text)
		}
		return v, f
	}
	return v, a.diverged(what(entry), fmt.Sprintf("the step %q", name))
}

// storable is a result as the journal keeps it.
func (a *Agent) storable(name string, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the result of the step %q has no JSON, and was dropped: return one that has: %w", name, jsonerr.Plain(err))
	}
	if most := a.q.MaxBytes(); len(text) > most {
		return nil, fmt.Errorf("%w: the result of the step %q has %d bytes, the limit is %d: store it elsewhere and return a reference", refusal.ErrInvalid, name, len(text), most)
	}
	return text, nil
}

func decodeStep[T any](text []byte) (v T, err error) {
	return v, jsonerr.Plain(json.Unmarshal(text, &v))
}

// lastWords is how long an agent may still write, once its context has ended, what
// happened before.
const lastWords = 2 * time.Second

// insist writes what must not be lost, since it has happened: for as long as the attempt
// may go on, and a little longer.
func (a *Agent) insist() error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(a))
	defer cancel()
	defer context.AfterFunc(a, func() { time.AfterFunc(lastWords, cancel) })()
	for {
		err := a.q.Attempts().Remember(ctx, a.job.ID, a.job.Epoch, a.job.Worker, a.note)
		if err == nil {
			a.note = queue.Note{}
			return nil
		}
		if !infrastructure(err) || ctx.Err() != nil {
			return a.trouble(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Checkpoint says that the agent's next run is to begin with this state: Restore gives it
// back, and what was remembered before is forgotten. It is written with the next wait or
// Step. Children that were made before are found again by Child; of those that could not
// be scheduled it tells as Start does, since no later run will.
func (a *Agent) Checkpoint(state any) error {
	if err := a.barred(); err != nil {
		return err
	}
	if err := a.tell(); err != nil {
		return err
	}
	a.since, a.made = nil, newDigest() // the replay does not make these children again
	if a.replaying() {
		return nil // it was made here before
	}
	b, err := encode(state)
	if err != nil {
		return fmt.Errorf("the state of a checkpoint has no JSON: %w", err)
	}
	if most := a.q.MaxBytes(); len(b) > most {
		return fmt.Errorf("%w: the state of a checkpoint has %d bytes, the limit is %d: store it elsewhere and keep a reference", refusal.ErrInvalid, len(b), most)
	}
	a.note = queue.Note{Checkpoint: &queue.Checkpoint{State: b, Children: a.children, Entries: a.entry}}
	return nil
}

// Restore reads the state of the last Checkpoint into what it is given a pointer to. It
// tells whether there was one.
func (a *Agent) Restore(state any) (bool, error) {
	if a == nil {
		return false, errNobody
	}
	b := a.memory.State
	if b == nil {
		return false, nil
	}
	if raw, ok := state.(*[]byte); ok {
		*raw = bytes.Clone(b)
		return true, nil
	}
	if len(b) == 0 {
		return true, nil
	}
	return true, jsonerr.Plain(json.Unmarshal(b, state))
}
