package inspect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

const secret = "s3cret"

// fillWithSecrets makes tasks in which users have put a secret wherever they can, and returns their ids.
func fillWithSecrets(t *testing.T, q *queue.Queue) (ids []string) {
	t.Helper()
	long := secret + strings.Repeat(" "+secret, 100) // stored in a key of its own
	w := map[string]*queuetest.Taker{}
	take := func(line, body string) (string, queue.Claim) {
		id := queuetest.Enqueue(t, q, queue.Task{Queue: line, Payload: []byte(body), Headers: map[string]string{secret: secret}, MaxRetries: 1, CancelGrace: time.Minute, Backoff: queue.Backoff{Delay: time.Millisecond}}).ID
		ids = append(ids, id)
		w[id] = &queuetest.Taker{Q: q, Worker: "w-" + line}
		return id, w[id].Take(t, id, line)
	}
	for i, body := range []string{secret, long} {
		id, taken := take(fmt.Sprint("done", i), body)
		w[id].Settle(t, queue.Outcome{ID: id, Epoch: taken.Epoch, Verb: queue.Complete, Result: []byte(body)})
		id, taken = take(fmt.Sprint("failed", i), body)
		w[id].Settle(t, queue.Outcome{ID: id, Epoch: taken.Epoch, Verb: queue.Fail, Class: queue.ClassFailed, Error: body})
		id, taken = take(fmt.Sprint("retried", i), body)
		w[id].Settle(t, queue.Outcome{ID: id, Epoch: taken.Epoch, Verb: queue.Fail, Error: body, Delay: time.Hour})
		id, taken = take(fmt.Sprint("released", i), body)
		w[id].Settle(t, queue.Outcome{ID: id, Epoch: taken.Epoch, Verb: queue.Release, Error: body})
		id, taken = take(fmt.Sprint("cancelling", i), body)
		held := []claim.Held{{ID: id, Epoch: taken.Epoch, Progress: secret}}
		if _, err := claim.Of(q).Heartbeat(t.Context(), queuetest.Partition(t, id), "w-"+fmt.Sprint("cancelling", i), time.Minute, w[id].Seq, held); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Cancel(t.Context(), id, secret); err != nil {
			t.Fatal(err)
		}
		agent, taken := take(fmt.Sprint("agent", i), body)
		child := queuetest.Enqueue(t, q, queue.Task{ID: agent + ".c", Kind: "approval", Promise: true, Payload: []byte(body), Timeout: time.Hour}).ID
		ids = append(ids, child)
		if err := claim.Of(q).Remember(t.Context(), agent, taken.Epoch, "w-"+fmt.Sprint("agent", i), claim.Note{Checkpoint: &queue.Checkpoint{State: []byte(body), Children: 1, Entries: 1},
			Entries: []claim.Entry{{Number: 2, Text: []byte(body)}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := claim.Of(q).Suspend(t.Context(), claim.Suspension{Agent: agent, Epoch: taken.Epoch, Worker: "w-" + fmt.Sprint("agent", i),
			Wait: claim.Wait{Entry: 3, Digest: "d", Mode: queue.WaitAll, Reason: secret, Limit: time.Hour, Members: []claim.Member{{ID: child}}}}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, queuetest.Enqueue(t, q, queue.Task{Queue: "line", Payload: []byte(body)}).ID)
	}
	// What is left of a record, a key of a newer version, and an event of another program.
	for _, err := range []error{
		q.Client().Set(t.Context(), q.Root(0)+":payload:0-gone", secret, 0).Err(),
		q.Client().Set(t.Context(), q.Root(0)+":spec:0-broken", "rubbish "+secret, 0).Err(),
		q.Client().HSet(t.Context(), q.Root(0)+":notes:0-x", "note", secret).Err(),
		q.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: q.EventsKey(0), Values: []any{"note", secret}}).Err(),
		q.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: q.EventsKey(0), Values: []any{"first", "99999", "at", "1800000000000", "events", "task_broken 0-x k q 1 - 0 1 - error=" + secret + "\n"}}).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// Hide leaves no secret in anything that this module returns about tasks.
func TestHideLeavesNoSecretAnywhere(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Events: queue.EventsAll})
		ids := fillWithSecrets(t, q)
		check := func(what string, before, after any) {
			t.Helper()
			if !strings.Contains(fmt.Sprint(before), secret) {
				t.Errorf("%s shows no secret without Hide: this test shows nothing", what)
			}
			if text := fmt.Sprint(after); strings.Contains(text, secret) {
				t.Errorf("%s shows the secret after Hide: %.600s", what, text)
			}
		}
		all := func(v any) string {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(text) + fmt.Sprintf("%+v", v)
		}
		for _, id := range ids {
			w, err := inspect.Read(t.Context(), q, id)
			if err != nil {
				t.Fatal(err)
			}
			before := all(w) + fmt.Sprintf("%+v %v", *w.Record, w.Explanation)
			inspect.Hide(w)
			check("Read of "+before[:60], before, all(w)+fmt.Sprintf("%+v %v %+v", *w.Record, w.Explanation, w.Memory))
		}
		page, err := inspect.List(t.Context(), q, inspect.Filter{Bodies: true}, "", 100)
		if err != nil || len(page.Lines) < len(ids)-2 {
			t.Fatalf("%d lines, %v", len(page.Lines), err)
		}
		before := all(page)
		for _, l := range page.Lines {
			inspect.Hide(l.Record)
		}
		check("List", before, all(page))

		var plain, hidden bytes.Buffer
		if err := inspect.ExportTo(t.Context(), q, &plain); err != nil {
			t.Fatal(err)
		}
		if err := inspect.ExportTo(t.Context(), q, &hidden, inspect.Hide[*inspect.ExportLine]); err != nil {
			t.Fatal(err)
		}
		check("ExportTo", plain.String(), hidden.String())
		if a, b := strings.Count(plain.String(), "\n"), strings.Count(hidden.String(), "\n"); a != b || strings.Count(hidden.String(), `"wait_deadline_at"`) != strings.Count(plain.String(), `"wait_deadline_at"`) {
			t.Errorf("the export has %d lines, and %d after Hide", a, b)
		}

		batch, err := events.Read(t.Context(), q, events.Oldest, 1000, 0)
		if err != nil || len(batch.Events) < len(ids) {
			t.Fatalf("%d events, %v", len(batch.Events), err)
		}
		before = all(batch.Events)
		for i := range batch.Events {
			inspect.Hide(&batch.Events[i])
		}
		check("events", before, all(batch.Events))
	})
}
