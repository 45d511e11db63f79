package bounds

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// sizes records the largest command and the largest reply of a client.
type sizes struct {
	mu             sync.Mutex
	given, replied size
}

// size is the size of a command or reply.
type size struct {
	elements, bytes int
	of              string // the command with the most elements
}

// small checks that no command or reply since the last call was large.
func (s *sizes) small(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, largest := range map[string]size{"command": s.given, "reply": s.replied} {
		if largest.elements > mostElements || largest.bytes > mostBytes {
			t.Errorf("the largest %s has %d elements and the longest %d bytes, want at most %d and %d: %s",
				what, largest.elements, largest.bytes, mostElements, mostBytes, largest.of)
		}
	}
	if s.given.elements == 0 || s.replied.elements == 0 {
		t.Error("no command was measured")
	}
	s.given, s.replied = size{}, size{}
}

func (s *sizes) note(cmd redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("%.80v", cmd.Args())
	s.given.grow(cmd.Args(), name)
	if val := reflect.ValueOf(cmd).MethodByName("Val"); val.IsValid() && cmd.Err() == nil {
		s.replied.grow(val.Call(nil)[0].Interface(), name)
	}
}

func (s *size) grow(v any, of string) {
	elements, bytes := measure(v)
	if elements > s.elements {
		s.elements, s.of = elements, of
	}
	s.bytes = max(s.bytes, bytes)
}

// measure returns the number of elements of a command or reply, including those of its parts, and their bytes.
func measure(v any) (elements, bytes int) {
	switch v := v.(type) {
	case nil:
		return 1, 0
	case string:
		return 1, len(v)
	case []any:
		for _, part := range v {
			e, b := measure(part)
			elements, bytes = elements+e, bytes+b
		}
		return elements, bytes
	}
	add := func(part reflect.Value) {
		e, b := measure(part.Interface())
		elements, bytes = elements+e, bytes+b
	}
	switch of := reflect.ValueOf(v); of.Kind() {
	case reflect.Slice:
		for i := range of.Len() {
			add(of.Index(i))
		}
	case reflect.Map:
		for at := of.MapRange(); at.Next(); {
			add(at.Key())
			add(at.Value())
		}
	case reflect.Struct:
		for i := range of.NumField() {
			add(of.Field(i))
		}
	default:
		return 1, 8
	}
	return elements, bytes
}

func (s *sizes) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *sizes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		s.note(cmd)
		return err
	}
}

func (s *sizes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			s.note(cmd)
		}
		return err
	}
}
