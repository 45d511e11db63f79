package queue

import (
	"context"
	"testing"
)

// A call ends when all its callers have given up. A caller that gives up when its call has ended does not end a later call that
// uses the same context.
func TestACallEndsWithItsLastCaller(t *testing.T) {
	var b batcher
	first := []*submission{{mayLeave: true}, {mayLeave: true}}
	call := b.begin(first)
	b.leave(first[0])
	if call.ctx.Err() != nil {
		t.Error("the call has ended while a caller waits")
	}
	b.end(call, first)

	second := []*submission{{mayLeave: true}}
	again := b.begin(second)
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
	if b.begin([]*submission{{mayLeave: true}}) == again {
		t.Error("a context that has ended is used again")
	}
	if steadily := b.begin([]*submission{{mayLeave: true}, {}}); steadily.ctx.Done() != nil {
		t.Error("a call whose caller cannot give up can end")
	}
}
