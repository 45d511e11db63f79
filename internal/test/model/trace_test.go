package model

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var traceFile = flag.String("trace", "", "compare the replies, keys, events and messages of each step with those in this `file`; "+
	"write the file if it does not exist. Give the same -rapid.seed and -rapid.checks")

// trace has a digest of each step: the replies of its calls, the keys and events after it, and the messages published in
// it. Steps depend on the seed and the model only, so two servers, or two versions of the Lua, play the same steps. A
// step that differs shows a difference that the model may not know of.
type trace struct {
	steps   []uint64
	earlier []uint64 // nil when the trace is written
	differs int      // the first step that is not as earlier, from 1 on
	step    strings.Builder
	heard   *redis.PubSub
	calls   map[string]bool // the names of the calls that were made
}

// openTrace returns the trace of a test, nil without -trace.
func openTrace(t *testing.T, rdb *redis.Client) *trace {
	if *traceFile == "" {
		return nil
	}
	tr := &trace{heard: rdb.PSubscribe(context.Background(), "*"), calls: map[string]bool{}}
	rdb.AddHook(tr)
	t.Cleanup(func() { tr.heard.Close() })
	text, err := os.ReadFile(*traceFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for ; len(text) >= 8; text = text[8:] {
		tr.earlier = append(tr.earlier, binary.LittleEndian.Uint64(text))
	}
	return tr
}

// ProcessHook notes which functions are called. Their names are curfew_, a digest, _ and the name of the call.
func (tr *trace) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); strings.HasPrefix(cmd.Name(), "fcall") && len(args) > 1 {
			if parts := strings.SplitN(fmt.Sprint(args[1]), "_", 3); len(parts) == 3 {
				tr.calls[parts[2]] = true
			}
		}
		return next(ctx, cmd)
	}
}

// DialHook changes nothing.
func (tr *trace) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing: no call is made in a pipeline.
func (tr *trace) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// add adds what a server returned to the digest of the step.
func (tr *trace) add(what ...any) {
	if tr != nil && tr.differs == 0 {
		fmt.Fprintln(&tr.step, what...)
	}
}

// end ends a step.
func (tr *trace) end(ctx context.Context) error {
	if tr == nil || tr.differs > 0 {
		return nil
	}
	if err := tr.hear(ctx); err != nil {
		return err
	}
	digest := fnv.New64a()
	digest.Write([]byte(tr.step.String()))
	tr.step.Reset()
	tr.steps = append(tr.steps, digest.Sum64())
	if n := len(tr.steps); tr.earlier != nil && (n > len(tr.earlier) || tr.earlier[n-1] != tr.steps[n-1]) {
		tr.differs = n
	}
	return nil
}

// hear adds the messages up to now. Redis answers the ping on the same connection after them.
func (tr *trace) hear(ctx context.Context) error {
	if err := tr.heard.Ping(ctx); err != nil {
		return err
	}
	for {
		message, err := tr.heard.ReceiveTimeout(ctx, 10*time.Second)
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *redis.Message:
			tr.add("message", m.Channel, m.Payload)
		case *redis.Pong:
			return nil
		}
	}
}

// close writes the trace if there was no earlier one, and prints the result.
func (tr *trace) close(t *testing.T) {
	switch {
	case tr == nil:
	case tr.earlier == nil:
		var text []byte
		for _, step := range tr.steps {
			text = binary.LittleEndian.AppendUint64(text, step)
		}
		if err := os.WriteFile(*traceFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("trace: %d steps of the calls %s\n", len(tr.steps), strings.Join(slices.Sorted(maps.Keys(tr.calls)), " "))
	case tr.differs > 0:
		fmt.Printf("trace: step %d differs\n", tr.differs)
	default:
		fmt.Printf("trace: %d steps are the same\n", len(tr.steps))
	}
}
