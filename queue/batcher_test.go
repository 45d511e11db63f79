package queue

import (
	"context"
	"slices"
	"testing"
)

// A call ends when all its callers have given up. A caller that gives up when its call has ended does not end a later call that
// uses the same context.
func TestACallEndsWithItsLastCaller(t *testing.T) {
	var b batcher
	begin := func(batch []*submission) *sending {
		b.waiting = batch
		call, taken := b.next()
		if !slices.Equal(taken, batch) {
			t.Fatalf("a call carries %d of %d submissions", len(taken), len(batch))
		}
		return call
	}
	task := &Task{}
	first := []*submission{{task: task, mayLeave: true}, {task: task, mayLeave: true}}
	call := begin(first)
	b.leave(first[0])
	if call.ctx.Err() != nil {
		t.Error("the call has ended while a caller waits")
	}
	b.end(call, first)

	second := []*submission{{task: task, mayLeave: true}}
	again := begin(second)
	if again != call {
		t.Error("the context of the first call is not used again")
	}
	b.leave(first[1])
	if again.ctx.Err() != nil {
		t.Error("a caller of the first call has ended the second one")
	}
	b.leave(second[0])
	if context.Cause(again.ctx) != errNobodyWaits {
		t.Errorf("the second call has ended with %v, want %v", context.Cause(again.ctx), errNobodyWaits)
	}
	b.end(again, second)
	if begin([]*submission{{task: task, mayLeave: true}}) == again {
		t.Error("a context that has ended is used again")
	}
	if steadily := begin([]*submission{{task: task, mayLeave: true}, {task: task}}); steadily.ctx.Done() != nil {
		t.Error("a call whose caller cannot give up can end")
	}
}
