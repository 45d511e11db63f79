package spans_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/spans"
)

// Without a provider there is no tracer. What a program calls then must not allocate.
func TestTracingThatIsOffAllocatesNothing(t *testing.T) {
	off := spans.New(spans.Config{Parent: true, EachInBatch: true, Baggage: true})
	ctx, start, failed := context.Background(), time.Now(), errors.New("no")
	task := spans.Task{ID: "0-x", Kind: "k", Queue: "default", Headers: map[string]string{"traceparent": given}}
	tasks := []spans.Task{task, task}
	request, err := http.NewRequest(http.MethodGet, "/tasks", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(){
		"Send": func() {
			_, span := off.Send(ctx, task, 100)
			span.Sent("0-x", failed)
		},
		"SendAll": func() {
			batch := off.SendAll(ctx, tasks)
			batch.Headers(task, 100)
			batch.Sent(0, "0-x", failed)
			batch.End(failed)
		},
		"Again":   func() { off.Again(ctx, task, task.Headers) },
		"Receive": func() { off.Receive(ctx, start, tasks) },
		"Process": func() {
			_, span := off.Process(ctx, task, spans.Attempt{Number: 1, Deadline: start})
			span.Agent("k")
			span.Waited("all", tasks)
			span.Settle(start, task, true, failed)
			span.Processed("error", "no")
		},
		"Cancel": func() {
			span := off.Cancel(ctx, 1)
			span.Cancelled(tasks)
			span.End(failed)
		},
		"Expire":  func() { off.Expire(ctx, task, spans.Expiry{Type: "queue", Deadline: start, Lag: time.Second}) },
		"Carried": func() { spans.Carried(ctx) },
		"Serve": func() {
			_, span := off.Serve(request, "/tasks")
			span.Served(500)
		},
	} {
		if n := testing.AllocsPerRun(100, call); n != 0 {
			t.Errorf("%s allocates %v times, and tracing is off", name, n)
		}
	}
}
