package agentwait

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Step runs something with an effect once, and remembers its result: a replay returns
// that. Only a crash between the effect and the writing of the result has it run again,
// so give the effect a key of its own, as from Rand, where that matters.
//
// An error is remembered, by its text, if the handler goes on after it. If the handler
// returns, the step runs again with the agent's next attempt.
func Step[T any](a *Agent, name string, do func(ctx context.Context) (T, error)) (v T, err error) {
	if a.gone != nil {
		return v, a.gone
	}
	if strings.ContainsAny(name, "\n\r") || name == "" || len(name) > 128 {
		return v, fmt.Errorf("%w: the name of a step, %q, must be one line of 1 to 128 bytes", queue.ErrInvalid, clip(name))
	}
	number, entry, ok := a.remembered()
	if ok {
		return replayed[T](a, name, entry)
	}
	// What the step may have been given by Rand or Now must be the same if it runs again.
	if err := a.write(); err != nil {
		return v, err
	}
	if v, err = do(a); err != nil {
		// Not written now: if it is what the handler returns, the step is to run again.
		said := err.Error()
		a.record(number, []byte("failed "+name+"\n"+said[:min(len(said), 4096)]))
		return v, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return v, fmt.Errorf("the result of the step %q has no JSON: %w", name, err)
	}
	if most := a.q.MaxBytes(); len(text) > most {
		return v, fmt.Errorf("%w: the result of the step %q has %d bytes, the limit is %d: store it elsewhere and return a reference", queue.ErrInvalid, name, len(text), most)
	}
	a.record(number, append([]byte("step "+name+"\n"), text...))
	if err := a.insist(); err != nil {
		return v, err
	}
	return decodeStep[T](text) // as the replay will see it
}

// replayed is what a step came to before.
func replayed[T any](a *Agent, name, entry string) (v T, err error) {
	switch line, text, _ := strings.Cut(entry, "\n"); line {
	case "step " + name:
		return decodeStep[T]([]byte(text))
	case "failed " + name:
		return v, errors.New(text)
	}
	return v, a.diverged(what(entry), fmt.Sprintf("the step %q", name))
}

func decodeStep[T any](text []byte) (v T, err error) {
	err = json.Unmarshal(text, &v)
	return v, err
}

// insist writes what must not be lost, since it has happened: for as long as the attempt
// may go on.
func (a *Agent) insist() error {
	for {
		err := a.write()
		if err == nil || !infrastructure(err) || a.Err() != nil {
			return err
		}
		a.gone = nil
		select {
		case <-a.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Now is the time by the clock of Redis, and the same again in a replay.
func (a *Agent) Now() time.Time {
	number, entry, ok := a.remembered()
	if ok {
		var ms int64
		if _, err := fmt.Sscanf(entry, "now %d", &ms); err != nil {
			a.diverged(what(entry), "a call of Now")
		}
		return time.UnixMilli(ms)
	}
	now := a.job.ClaimedAt.Add(time.Since(a.job.ReceivedAt))
	a.record(number, fmt.Appendf(nil, "now %d", now.UnixMilli()))
	return time.UnixMilli(now.UnixMilli())
}

// Rand is a source of random numbers that gives the same ones again in a replay.
func (a *Agent) Rand() *rand.Rand {
	number, entry, ok := a.remembered()
	s1, s2 := rand.Uint64(), rand.Uint64()
	if !ok {
		a.record(number, fmt.Appendf(nil, "rand %d %d", s1, s2))
	} else if _, err := fmt.Sscanf(entry, "rand %d %d", &s1, &s2); err != nil {
		a.diverged(what(entry), "a call of Rand")
	}
	return rand.New(rand.NewPCG(s1, s2))
}

// Checkpoint says that the agent's next run is to begin with this state: Restore gives it
// back, and what was remembered before is forgotten. It is written with the next wait or
// Step. Children that were made before are found again by Child.
func (a *Agent) Checkpoint(state any) error {
	if a.gone != nil {
		return a.gone
	}
	a.made = newDigest() // the replay does not make these children again
	if a.replaying() {
		return nil // it was made here before
	}
	b, err := encode(state)
	if err != nil {
		return fmt.Errorf("the state of a checkpoint has no JSON: %w", err)
	}
	if most := a.q.MaxBytes(); len(b) > most {
		return fmt.Errorf("%w: the state of a checkpoint has %d bytes, the limit is %d: store it elsewhere and keep a reference", queue.ErrInvalid, len(b), most)
	}
	a.note = queue.Note{Checkpoint: &queue.Checkpoint{State: b, Children: a.children, Entries: a.entry}}
	return nil
}

// Restore reads the state of the last Checkpoint into what it is given a pointer to. It
// tells whether there was one.
func (a *Agent) Restore(state any) (bool, error) {
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
	return true, json.Unmarshal(b, state)
}
