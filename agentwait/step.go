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

// Step calls do once and records its result in the journal. A replay returns the recorded result
// without calling do. Use it for effects. A worker that must stop still writes the result. The step
// runs again only if its result could not be written: the process crashed, it lost the agent, or Redis
// was away when the attempt ended. If that matters, give the effect an idempotency key, from Rand
// before the step.
//
// An error is recorded too, with the next call of the agent. If the handler returns without such a
// call, the step runs again in the agent's next attempt. Both the first run and a replay get the error
// in its stored form: the text, the verdict of worker.RetryAfter, Discard, Fail or Release, and whether
// it is context.DeadlineExceeded or context.Canceled. errors.Is and errors.As find nothing else: to
// branch on anything else, return a value. A panic is recorded like an error; a replay panics with its
// text. An error that do returns after the agent's context has ended is returned unchanged and not
// recorded.
//
// If the result cannot be encoded as JSON, or is larger than queue.Config.MaxBytes, Step records a
// failure at once, since the effect has happened.
//
// do must not use the agent except as a context: otherwise the agent ends as FAILED.
func Step[T any](a *Agent, name string, do func(ctx context.Context) (T, error)) (v T, err error) {
	if err := a.barred(); err != nil {
		return v, err
	}
	if strings.ContainsAny(name, "\n\r") || name == "" || len(name) > 128 {
		return v, fmt.Errorf("%w: the name of a step, %s, must be one line of 1 to 128 bytes", refusal.ErrInvalid, inQuotes(name))
	}
	if do == nil {
		return v, fmt.Errorf("%w: the function of the step %s is nil", refusal.ErrInvalid, inQuotes(name))
	}
	number, entry, ok := a.remembered()
	if ok {
		return replayed[T](a, name, entry)
	}
	// The step may use results of Rand or Now: they must be the same if it runs again.
	if err := a.write(); err != nil {
		return v, err
	}
	if a.Err() != nil { // the attempt has ended: do not begin the effect
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
	return decodeStep[T](text) // the value that a replay gets
}

// perform calls the function of a step. It does not write an error yet: if the handler returns the
// error, the step must run again.
func perform[T any](a *Agent, number int64, name string, do func(ctx context.Context) (T, error)) (v T, err error) {
	a.inside = name
	defer func() {
		a.inside = ""
		if p := recover(); p != nil {
			f := &failure{Panic: true, text: fmt.Sprint(p)}
			if a.gone == nil && a.Err() == nil {
				f = a.failed(number, name, f)
			}
			panic(f.text) // in the deferred function, so that the stack has the first panic
		}
	}()
	v, err = do(a)
	switch {
	case a.gone != nil: // the function has used the agent
		return v, a.gone
	case err != nil && a.Err() != nil: // the attempt has ended, and that may be the reason of the error
		a.gone = a.Err()
		return v, err
	case err != nil:
		return v, a.failed(number, name, failureOf(err))
	}
	return v, nil
}

// replayed returns the recorded result or error of a step.
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

// storable returns a result as the journal stores it.
func (a *Agent) storable(name string, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the result of the step %q as JSON, so it was dropped: %w", name, jsonerr.Plain(err))
	}
	if most := a.q.MaxBytes(); len(text) > most {
		return nil, fmt.Errorf("%w: the result of the step %q has %d bytes, the limit is %d: store it elsewhere and return a reference", refusal.ErrInvalid, name, len(text), most)
	}
	return text, nil
}

func decodeStep[T any](text []byte) (v T, err error) {
	return v, jsonerr.Plain(json.Unmarshal(text, &v))
}

// lastWords is how long an agent tries to write a result after its context has ended.
const lastWords = 2 * time.Second

// insist writes the entries, and tries again until the context has ended and lastWords have passed. The
// effect has happened, so its result must not be lost.
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

// Checkpoint makes the agent's next run begin with this state, which Restore returns. The journal
// before it is dropped. The checkpoint is written with the next wait or Step. Use Child for children
// that were scheduled before it: no later run schedules them, so Checkpoint creates them. If some could
// not be scheduled or are refused, Checkpoint returns the error that Start returns, and makes no
// checkpoint.
func (a *Agent) Checkpoint(state any) error {
	if err := a.Start(); err != nil {
		return err
	}
	a.since, a.made = nil, newDigest() // a replay does not schedule these children again
	if a.replaying() {
		return nil // an earlier run has made this checkpoint
	}
	b, err := encode(state)
	if err != nil {
		return fmt.Errorf("cannot encode the state of a checkpoint as JSON: %w", err)
	}
	if most := a.q.MaxBytes(); len(b) > most {
		return fmt.Errorf("%w: the state of a checkpoint has %d bytes, the limit is %d: store it elsewhere and keep a reference", refusal.ErrInvalid, len(b), most)
	}
	a.note = queue.Note{Checkpoint: &queue.Checkpoint{State: b, Children: a.children, Entries: a.entry}}
	return nil
}

// Restore decodes the state of the last Checkpoint into state, a pointer. It reports whether there was
// a checkpoint when this run began.
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
