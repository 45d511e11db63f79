package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Signal sends a payload to an agent under a name. The agent reads it with agentwait.Signal. The
// signal is stored with the agent, so it can be sent before the agent waits for it.
//
// The first signal of a name counts. A second one changes nothing: Done is false, and the Resolution
// has the first payload, or the error with which the signal ended. If the agent could not use the
// payload, it calls agentwait.NextSignal. Then the next signal of the name counts.
//
// Signal returns [refusal.ErrOwnerEnded] if the agent has ended, and [refusal.ErrNotFound]. It
// returns [refusal.ErrInvalid] if the agent already waits for JSON and the payload is not JSON
// (agentwait.SendSignal always sends JSON), and for a promise or timer, which cannot wait. Whether
// another task is an agent is not known before it waits: if it never does, the signal ends with it.
//
// A program that repeats Signal after [refusal.ErrUnknown] can settle the next signal of the name.
// [Queue.SignalAs] prevents that.
func (q *Queue) Signal(ctx context.Context, agent, name string, payload []byte) (Resolution, error) {
	return q.SignalAs(ctx, NewCall(), agent, name, payload)
}

// SignalAs is Signal with a name for the call, one word of up to 100 bytes. Each signal to an agent
// needs another name. A repeat with the same name has no further effect, even if the agent has
// requested the next signal meanwhile, and Done is true again. Repeats are recognized among the last
// 500 signals of a name.
func (q *Queue) SignalAs(ctx context.Context, call, agent, name string, payload []byte) (Resolution, error) {
	if err := q.ready(ctx); err != nil {
		return Resolution{}, refusal.Failed("signal", "", err)
	}
	r, err := q.signal(ctx, call, agent, name, payload)
	return r, refusal.Failed("signal", agent, err)
}

func (q *Queue) signal(ctx context.Context, call, agent, name string, payload []byte) (Resolution, error) {
	if err := CheckCall(call); err != nil {
		return Resolution{}, err
	}
	p, err := names.PartitionIn(agent, q.Partitions())
	if err != nil {
		return Resolution{}, err
	}
	if err := CheckSignal(name); err != nil {
		return Resolution{}, err
	}
	if len(payload) > q.config.MaxBytes {
		return Resolution{}, refusal.Invalid("payload", "has %d bytes, the limit is %d: store it elsewhere and send a reference", len(payload), q.config.MaxBytes)
	}
	words, err := engine.Words(q.engine.Call(ctx, p, "signal", call, agent, name, payload))
	if err != nil {
		return Resolution{}, err
	}
	switch word := engine.Text(words[0]); {
	case word == "OK":
		return Resolution{Done: true, Status: Completed}, nil
	case word == "ALREADY" && len(words) == 3:
		return settledBefore(words), nil
	case word == "OWNER" && len(words) == 3 && engine.Text(words[2]) == "":
		return Resolution{}, refusal.ErrNotFound
	case word == "OWNER":
		return Resolution{}, refusal.ErrOwnerEnded
	case word == "TAKEN":
		return Resolution{}, fmt.Errorf("%w: the agent has a child s-%s that is not a signal", refusal.ErrConflict, name)
	}
	return Resolution{}, engine.Unexpected("answer to signal", words)
}

// CheckSignal returns [refusal.ErrInvalid] for a name that a signal cannot have.
func CheckSignal(name string) error {
	if !names.Valid(name, "_-") {
		return refusal.Invalid("signal", "%q must be 1 to 128 of A-Z a-z 0-9 _ - and begin with a letter or digit", refusal.Clip(name))
	}
	if at := strings.LastIndex(name, "__"); at >= 0 && at+2 < len(name) && strings.Trim(name[at+2:], "0123456789") == "" {
		return refusal.Invalid("signal", "%q must not end with __ and a number: agentwait.NextSignal uses such names", refusal.Clip(name))
	}
	return nil
}
