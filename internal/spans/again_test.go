package spans_test

import (
	"context"
	"testing"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// A task that is run again by hand is sent by a span of its own, which is linked to the sender of the earlier task.
func TestATaskThatIsRunAgainLeadsToTheEarlierOne(t *testing.T) {
	for _, parent := range []bool{false, true} {
		s := newStage(t, queue.Tracing{Parent: parent})
		worker.Handle(s.w, "k", func(context.Context, []byte) ([]byte, error) { return nil, nil })
		first := s.enqueue(s.ctx, queue.Task{Kind: "k", Headers: map[string]string{"tenant": "a"}})
		s.drain()
		receipt, err := s.q.Retry(s.ctx, first, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.drain()
		sends, runs := s.named("send default"), s.named("process default")
		if len(sends) != 2 || len(runs) != 2 {
			t.Fatalf("the spans are %v, want two sends and two attempts", s.names())
		}
		again := sends[1]
		if !linked(again, sends[0].SpanContext) || value(again, "curfew.task.retry_of") != first || value(again, "messaging.message.id") != receipt.ID {
			t.Errorf("the second send has the links %v and the attributes %v, want a link to the first send, and the earlier task", again.Links, again.Attributes)
		}
		if parent && (again.Parent.SpanID() != sends[0].SpanContext.SpanID() || runs[1].Parent.SpanID() != again.SpanContext.SpanID()) {
			t.Error("with Parent, the first send is not the parent of the second one, or that not of the second attempt")
		}
		if !parent && !linked(runs[1], again.SpanContext) {
			t.Errorf("the second attempt has the links %v, want one to the second send", runs[1].Links)
		}
		if h := s.get(receipt.ID).Headers; h["tenant"] != "a" || len(h) != 2 || h["traceparent"] == s.get(first).Headers["traceparent"] {
			t.Errorf("the headers of the second task are %v, want those of the first one with another traceparent", h)
		}
	}
}

func TestACallerThatRunsATaskAgainCanSetItsContext(t *testing.T) {
	s := newStage(t, queue.Tracing{})
	worker.Handle(s.w, "k", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	first := s.enqueue(s.ctx, queue.Task{Kind: "k"})
	s.drain()
	receipt, err := s.q.Retry(s.ctx, first, func(task *queue.Task) { task.Headers = map[string]string{"traceparent": given} })
	if err != nil {
		t.Fatal(err)
	}
	if h := s.get(receipt.ID).Headers; h["traceparent"] != given {
		t.Errorf("the headers are %v, want the traceparent of the caller", h)
	}
	if again := s.named("send default")[1]; !linked(again, s.named("send default")[0].SpanContext) {
		t.Errorf("the links are %v, want one to the first send", again.Links)
	}
}
