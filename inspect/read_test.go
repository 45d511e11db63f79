package inspect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/vocabulary"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Read returns a task with its children, the newest first, and its JSON has names of the vocabulary.
func TestReadReturnsATaskWhole(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		id := queuetest.Enqueue(t, q, queue.Task{Payload: []byte("secret payload"), Headers: map[string]string{"a": "secret header"}, Timeout: time.Hour}).ID
		for i := range 120 {
			queuetest.Enqueue(t, q, queue.Task{ID: fmt.Sprint(id, ".", i), Payload: []byte("secret")})
		}
		w := &queuetest.Taker{Q: q, Worker: "w"}
		held := w.Take(t, id, "default")
		if err := claim.Of(q).Remember(t.Context(), id, held.Epoch, "w", claim.Note{Checkpoint: &queue.Checkpoint{State: []byte("secret state"), Children: 120, Entries: 3},
			Entries: []claim.Entry{{Number: 4, Text: []byte("step secret\n1")}}}); err != nil {
			t.Fatal(err)
		}
		whole, err := inspect.Read(t.Context(), q, id)
		if err != nil || len(whole.Children) != 100 || whole.Children[0].ID != id+".119" || string(whole.Memory.State) != "secret state" || len(whole.Memory.Journal) != 1 ||
			whole.Explanation.Why != inspect.WhyRunning || string(whole.Payload) != "secret payload" {
			t.Fatalf("%+v, %v", whole, err)
		}
		var line map[string]any
		if err := json.Unmarshal(encoded(t, whole), &line); err != nil || vocabulary.CheckJSON(line) != nil || line["children"] != 120.0 || line["payload"] != "secret payload" {
			t.Errorf("%v, %v, %v", line, err, vocabulary.CheckJSON(line))
		}
		inspect.Hide(whole)
		if text := string(encoded(t, whole)); strings.Contains(text, "secret") || !strings.Contains(text, `"payload_bytes":14`) {
			t.Errorf("what is hidden is in %s", text)
		}
		if _, err := inspect.Read(t.Context(), q, "0-NOBODY"); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("of no task: %v", err)
		}
	})
}

func encoded(t *testing.T, w *inspect.Whole) []byte {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Hide leaves no text of users in a record, whatever state it is in.
func TestHideLeavesNoTextOfUsers(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		w := &queuetest.Taker{Q: q, Worker: "w"}
		task := queue.Task{Payload: []byte("secret"), Headers: map[string]string{"secret": "secret"}, MaxRetries: 1, CancelGrace: time.Minute, Backoff: queue.Backoff{Delay: time.Millisecond}}
		failed, cancelling := queuetest.Enqueue(t, q, task).ID, ""
		taken := w.Take(t, failed, "default")
		w.Settle(t, queue.Outcome{ID: failed, Epoch: taken.Epoch, Verb: queue.Fail, Error: "secret"})
		task.Queue = "other"
		cancelling = queuetest.Enqueue(t, q, task).ID
		taken = w.Take(t, cancelling, "other")
		held := []claim.Held{{ID: cancelling, Epoch: taken.Epoch, Progress: "secret"}}
		if _, err := claim.Of(q).Heartbeat(t.Context(), queuetest.Partition(t, cancelling), "w", time.Minute, w.Seq, held); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Cancel(t.Context(), cancelling, "secret"); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{failed, cancelling} {
			whole, err := inspect.Read(t.Context(), q, id)
			if err != nil {
				t.Fatal(err)
			}
			before := string(encoded(t, whole))
			inspect.Hide(whole)
			if text := string(encoded(t, whole)) + fmt.Sprintf("%+v", *whole.Record); strings.Contains(text, "secret") || strings.Count(before, "secret") < 4 {
				t.Errorf("%s\nbecomes\n%s", before, text)
			}
		}
	})
}
