package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/internal/vocabulary"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The stories explain_*.txt in queue/testdata show the sentences for each case.

// frozen opens a namespace whose clock is stopped at testclock.Start.
func frozen(t *testing.T, rdb redis.UniversalClient) *queue.Queue {
	t.Helper()
	return queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Library: testclock.Library(t, rdb), Logger: slog.New(slog.DiscardHandler)})
}

// crowd makes an agent that waits for n promises. Promise i has a timeout of i+1 seconds.
func crowd(t *testing.T, q *queue.Queue, w *queuetest.Taker, n int, wait claim.Wait) (agent string, members []string) {
	t.Helper()
	ctx := context.Background()
	agent = queuetest.Enqueue(t, q, queue.Task{Queue: "agents"}).ID
	held := w.Take(t, agent, "agents")
	var children []queue.Task
	for i := range n {
		id := fmt.Sprintf("%s.%d", agent, i)
		children = append(children, queue.Task{ID: id, Kind: "k", Promise: true, Timeout: time.Duration(i+1) * time.Second})
		members = append(members, id)
		wait.Members = append(wait.Members, claim.Member{ID: id})
	}
	receipts, err := q.EnqueueAll(ctx, children)
	if err != nil || len(receipts) != n {
		t.Fatal(err)
	}
	wait.Entry, wait.Digest = 1, "d"
	if _, err := claim.Of(q).Suspend(ctx, claim.Suspension{Agent: agent, Epoch: held.Epoch, Worker: w.Worker, Wait: wait}); err != nil {
		t.Fatal(err)
	}
	return agent, members
}

func TestALargeWaitIsExplainedWhole(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	q := frozen(t, rdb)
	w := &queuetest.Taker{Q: q, Worker: "w"}
	for n, modes := range map[int][]queue.Mode{
		1: {queue.WaitAll}, 199: {queue.WaitAll}, 200: {queue.WaitAll, queue.WaitAny}, 201: {queue.WaitAll, queue.WaitNSettled}, 1234: {queue.WaitAll},
	} {
		for _, mode := range modes {
			decides := map[queue.Mode]int{queue.WaitAll: n - 1, queue.WaitAny: 0, queue.WaitNSettled: n / 2}[mode]
			agent, members := crowd(t, q, w, n, claim.Wait{Mode: mode, Need: n/2 + 1})
			e, err := inspect.Explain(context.Background(), q, agent)
			if err != nil {
				t.Fatal(err)
			}
			span := time.Duration(decides+1) * time.Second
			want := inspect.Bound{Kind: inspect.BoundDeadline, At: testclock.Start.Add(span).UTC(), Left: duration.Duration(span), Task: members[decides]}
			if e.Bound != want || e.Wait.Left != n {
				t.Errorf("%s of %d: %d left, bound %+v, want %+v", mode, n, e.Wait.Left, e.Bound, want)
			}
		}
	}
}

// A member that ends between two pages may be in neither, and the member behind it must not be skipped.
func TestMembersThatEndWhileTheyAreReadDoNotHideOthers(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	q := frozen(t, rdb)
	agent, members := crowd(t, q, &queuetest.Taker{Q: q, Worker: "w"}, 900, claim.Wait{Mode: queue.WaitAll})
	ended := make(chan error, 1)
	go func() {
		for at := 0; at < 899; at += 7 {
			if _, err := q.CancelAll(context.Background(), members[at:min(at+7, 899)], "x"); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	want := inspect.Bound{Kind: inspect.BoundDeadline, At: testclock.Start.Add(900 * time.Second).UTC(), Left: duration.Duration(900 * time.Second), Task: members[899]}
	for asked := 1; ; asked++ {
		e, err := inspect.Explain(context.Background(), q, agent)
		if err != nil {
			t.Fatal(err)
		}
		if e.Bound != want || e.Wait.Left+e.Wait.Bad != 900 {
			t.Fatalf("%d of 900 left, %d ended, bound %+v, want %+v", e.Wait.Left, e.Wait.Bad, e.Bound, want)
		}
		if e.Wait.Left == 1 {
			t.Logf("Explain was called %d times while the members ended", asked)
			break
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			ended <- nil
		default:
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestExplainChangesNothing(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := context.Background()
		q := frozen(t, rdb)
		w := &queuetest.Taker{Q: q, Worker: "w"}
		agent, members := crowd(t, q, w, 3, claim.Wait{Mode: queue.WaitAll})
		late := queuetest.Enqueue(t, q, queue.Task{Timeout: time.Second}).ID
		held := queuetest.Enqueue(t, q, queue.Task{Queue: "rated"}).ID
		if _, err := q.LimitRate(ctx, "rated", queue.Rate{N: 1, Per: time.Minute}); err != nil {
			t.Fatal(err)
		}
		rdb.HSet(ctx, q.Root(0)+":queue:rated", "full_at", "9e15")            // the clock was set back
		rdb.Set(ctx, q.Root(0)+":spec:0-ODD", "k x 1 - -\nrole=timer\n\n", 0) // it has no instant at which it fires
		testclock.Set(t, rdb, q.Root(0), testclock.Start.Add(time.Hour))
		before := redistest.Dump(t, rdb, q.Root(0))
		for _, id := range append([]string{agent, late, held, "0-ODD", "0-NOBODY", agent + ".nobody"}, members...) {
			e, err := inspect.Explain(ctx, q, id)
			if err != nil && !errors.Is(err, refusal.ErrNotFound) {
				t.Fatalf("%s: %v", id, err)
			}
			if id == late && (e.Why != inspect.WhyOverdue || e.Status != queue.Pending) {
				t.Errorf("%s, want PENDING and overdue", e)
			}
			if id == held && e.Line.Hold != inspect.HoldThrottled {
				t.Errorf("%s, want it held up by the rate", e)
			}
			if id == "0-ODD" && e.Why != inspect.WhyBroken {
				t.Errorf("%s, want it broken", e)
			}
		}
		if after := redistest.Dump(t, rdb, q.Root(0)); after != before {
			t.Errorf("Explain has changed keys: before\n%s\nafter\n%s", before, after)
		}
	})
}

func TestExplainRefusesWhatIsNoTask(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		for id, want := range map[string]error{
			"":                 refusal.ErrInvalid,
			"rubbish":          refusal.ErrInvalid,
			"0-a b":            refusal.ErrInvalid,
			"900-NOBODY":       refusal.ErrInvalid,
			"0-NOBODY":         refusal.ErrNotFound,
			"0-NOBODY.1":       refusal.ErrNotFound,
			"0-NOBODY!failure": refusal.ErrNotFound,
		} {
			if e, err := inspect.Explain(context.Background(), q, id); e != nil || !errors.Is(err, want) {
				t.Errorf("Explain(%q) = %v, %v, want %v", id, e, err, want)
			}
		}
	})
}

// Each field of an Explanation has a name of the vocabulary and the type of that name.
func TestAnExplanationUsesTheVocabulary(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := frozen(t, rdb)
	agent, members := crowd(t, q, &queuetest.Taker{Q: q, Worker: "w"}, 2, claim.Wait{Mode: queue.WaitAll, Limit: time.Minute, FromFirst: true, Label: "<all> of 2"})
	all := []*inspect.Explanation{new(full(reflect.TypeFor[inspect.Explanation]()).Interface().(inspect.Explanation))}
	for _, id := range append(members, agent) {
		e, err := inspect.Explain(context.Background(), q, id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	for _, e := range all {
		text, err := json.Marshal(e)
		var decoded map[string]any
		if err := errors.Join(err, json.Unmarshal(text, &decoded), vocabulary.CheckJSON(decoded)); err != nil || decoded["sentence"] != e.String() {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// full returns a value of a type whose fields and elements are all set.
func full(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMilli(1)))
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(full(t.Field(i).Type))
		}
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(full(t.Elem()))
	case t.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, full(t.Elem())))
	case t.Kind() == reflect.String:
		v.SetString("x")
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(1)
	}
	return v
}
