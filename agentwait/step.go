package agentwait

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Step calls do once and records its result in the journal. A replay returns the recorded result
// without calling do. Use it for effects. A worker that must stop still writes the result. The step
// runs again only if its result could not be written: because the process crashed, another worker
// claimed the agent, or Redis was unreachable when the attempt ended. If a second run does harm,
// create an idempotency key from Rand before the step, and pass it to the effect.
//
// An error is recorded too, with the next call of the agent. If the handler returns without such a
// call, the step runs again in the agent's next attempt. Both the first run and a replay get the
// error in its stored form: the text, the verdict of worker.RetryAfter, Discard, Fail or Release,
// and whether it is context.DeadlineExceeded or context.Canceled. errors.Is and errors.As find
// nothing else: to branch on anything else, return a value. A panic is recorded like an error; a
// replay panics with its text. An error that do returns after the agent's context has ended is
// returned unchanged and not recorded.
//
// If the result cannot be encoded as JSON, or is larger than queue.Config.MaxBytes, Step records a
// failure at once, because the effect has happened.
//
// do must not use the agent except as a context: otherwise the agent ends as FAILED.
func Step[T any](a *Agent, name string, do func(ctx context.Context) (T, error)) (v T, err error) {
	if err := a.stopped(); err != nil {
		return v, err
	}
	if strings.ContainsAny(name, "\n\r") || name == "" || len(name) > 128 {
		return v, fmt.Errorf("%w: the name of a step, %s, must be one line of 1 to 128 bytes", refusal.ErrInvalid, inQuotes(name))
	}
	if do == nil {
		return v, fmt.Errorf("%w: the function of the step %s is nil", refusal.ErrInvalid, inQuotes(name))
	}
	number, entry, ok := a.nextEntry()
	if ok {
		return replayStep[T](a, name, entry)
	}
	// Write the journal first, because the step may use results of Rand or Now, which must be the
	// same if the step runs again.
	if err := a.write(); err != nil {
		return v, err
	}
	if a.Err() != nil { // the attempt has ended, so the effect must not begin
		return v, a.callError(context.Cause(a))
	}
	done, err := perform(a, number, name, do)
	if err != nil {
		return v, err
	}
	text, encodeErr := a.encodeStep(name, done)
	if encodeErr == nil {
		v, encodeErr = decodeStep[T](text) // the value that a replay gets
	}
	if encodeErr != nil {
		encodeErr = a.recordFailure(number, name, failureOf(worker.Discard(encodeErr)))
	} else {
		a.record(number, append([]byte("step "+name+"\n"), text...))
	}
	if err := a.writeStep(); err != nil {
		return v, err
	}
	if encodeErr != nil {
		return v, encodeErr
	}
	return v, nil
}

// perform calls the function of a step. It does not write an error yet: if the handler returns the
// error, the step must run again.
func perform[T any](a *Agent, number int64, name string, do func(ctx context.Context) (T, error)) (v T, err error) {
	a.stepName = name
	defer func() {
		a.stepName = ""
		if p := recover(); p != nil {
			f := &failure{Panic: true, text: fmt.Sprint(p)}
			if a.stopErr == nil && a.Err() == nil {
				f = a.recordFailure(number, name, f)
			}
			panic(f.text) // in the deferred function, so that the stack trace includes the first panic
		}
	}()
	v, err = do(a)
	switch {
	case a.stopErr != nil: // the function has called the agent
		return v, a.stopErr
	case err != nil && a.Err() != nil: // the end of the attempt may be the cause of the error, so it is not recorded
		a.stopErr = a.Err()
		return v, err
	case err != nil:
		return v, a.recordFailure(number, name, failureOf(err))
	}
	return v, nil
}

// replayStep returns the recorded result or error of a step.
func replayStep[T any](a *Agent, name, entry string) (v T, err error) {
	switch line, text, _ := strings.Cut(entry, "\n"); line {
	case "step " + name:
		if v, err = decodeStep[T]([]byte(text)); err != nil { // the first run could decode it
			err = a.diverged(fmt.Sprintf("the step %q with the result %s", name, inQuotes(text)), fmt.Sprintf("the step with a result of type %T: %v", v, err))
		}
		return v, err
	case "failed " + name:
		f := readFailure(text)
		if f.Panic {
			panic(f.text)
		}
		return v, f
	}
	return v, a.diverged(describeEntry(entry), fmt.Sprintf("the step %q", name))
}

// encodeStep returns a result in the form that the journal stores.
func (a *Agent) encodeStep(name string, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the result of the step %q as JSON, so it was dropped: %w", name, jsonx.Plain(err))
	}
	if limit := a.q.MaxBytes(); len(text) > limit {
		return nil, fmt.Errorf("%w: the result of the step %q has %d bytes, the limit is %d: store it elsewhere and return a reference", refusal.ErrInvalid, name, len(text), limit)
	}
	return text, nil
}

func decodeStep[T any](text []byte) (v T, err error) {
	return v, jsonx.Plain(json.Unmarshal(text, &v))
}

// writeGrace bounds the time in which an agent tries to write a result after its context has ended.
const writeGrace = 2 * time.Second

// writeStep writes the journal, and tries again until the context has ended and writeGrace has
// passed. It does not give up earlier, because the effect has happened and its result must not be
// lost.
func (a *Agent) writeStep() error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(a))
	defer cancel()
	defer context.AfterFunc(a, func() { time.AfterFunc(writeGrace, cancel) })()
	for {
		err := claim.Of(a.q).Remember(ctx, a.job.ID, a.job.Epoch, a.job.Worker, a.note)
		if err == nil {
			a.note = claim.Note{}
			return nil
		}
		if !infrastructure(err) || ctx.Err() != nil {
			return a.callError(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Checkpoint makes the agent's next run begin with this state, which Restore returns. The journal
// before it is dropped. The next wait or Step writes the checkpoint. Use Child for children that
// were scheduled before it: no later run schedules them, so Checkpoint creates them. If a child
// could not be scheduled or is refused, Checkpoint returns the error that Start returns, and makes
// no checkpoint.
func (a *Agent) Checkpoint(state any) error {
	if err := a.Start(); err != nil {
		return err
	}
	a.recent, a.digest = nil, newDigest() // a replay does not schedule these children again
	if a.replaying() {
		return nil // an earlier run has made this checkpoint
	}
	b, err := encode(state)
	if err != nil {
		return fmt.Errorf("cannot encode the state of a checkpoint as JSON: %w", err)
	}
	if limit := a.q.MaxBytes(); len(b) > limit {
		return fmt.Errorf("%w: the state of a checkpoint has %d bytes, the limit is %d: store it elsewhere and keep a reference", refusal.ErrInvalid, len(b), limit)
	}
	a.note = claim.Note{Checkpoint: &queue.Checkpoint{State: b, Children: a.children, Entries: a.entry}}
	return nil
}

// Restore decodes the state of the last Checkpoint into state, a pointer. It reports whether there was
// a checkpoint when this run began. If the state cannot be decoded, because the code that made the
// checkpoint had another type, Restore returns a *DivergedError: return it, or restore another type.
func (a *Agent) Restore(state any) (bool, error) {
	if a == nil {
		return false, errNilAgent
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
	if err := jsonx.Plain(json.Unmarshal(b, state)); err != nil {
		return true, &DivergedError{Agent: a.job.ID, Call: a.memory.Entries, Was: "a Checkpoint with the state " + inQuotes(string(b)),
			Now: fmt.Sprintf("a Restore into %T: %v", state, err)}
	}
	return true, nil
}
