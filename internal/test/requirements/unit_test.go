package requirements

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func creationSetsDeadline(t *testing.T) {
	s := running(t)
	for _, timeout := range []time.Duration{time.Millisecond, time.Second, 5 * time.Second, 30 * time.Second, 60 * time.Second, 24 * time.Hour} {
		r, err := s.q.Enqueue(t.Context(), queue.Task{Kind: "k", Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		f := s.record(r.ID).Fields
		if got := ms(t, f["deadline_at"]) - ms(t, f["created_at"]); got != timeout.Milliseconds() {
			t.Errorf("timeout %v: deadline_at - created_at = %d ms", timeout, got)
		}
		if got := r.Deadline.UnixMilli(); got != ms(t, f["deadline_at"]) {
			t.Errorf("timeout %v: the receipt has the deadline %d, the record %s", timeout, got, f["deadline_at"])
		}
		score := s.rdb.ZScore(t.Context(), s.q.Root(0)+":deadlines", r.ID).Val()
		if int64(score) != ms(t, f["deadline_at"]) {
			t.Errorf("timeout %v: the index has %.0f, the record %s", timeout, score, f["deadline_at"])
		}
	}

	at := time.Now().Add(time.Minute).Truncate(time.Millisecond)
	if r := s.record(s.enqueue(queue.Task{Kind: "k", Deadline: at})); !r.Deadline.Equal(at) {
		t.Errorf("a deadline given as an instant is stored as %v, want %v", r.Deadline, at)
	}
}

func ms(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatalf("%q is not an instant in ms", s)
	}
	return n
}

func timeoutMustBePositive(t *testing.T) {
	s := running(t)
	if _, err := s.q.Enqueue(t.Context(), queue.Task{Kind: "k", Timeout: -time.Second}); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("a negative timeout: %v, want ErrInvalid", err)
	}
	// On the wire a missing timeout and 0 differ.
	library, err := lua.Load(lua.Options{Functions: true})
	if err != nil {
		t.Fatal(err)
	}
	before := s.dump()
	for _, value := range []string{"0", "-1", "-1000", "1.5", "1e3", " 1", "", "nan", "9007199254740993"} {
		reply, err := library.Run(t.Context(), s.rdb, "enqueue", s.q.Root(0), wire.Tasks([]any{"id", "0-x", "kind", "k", "timeout_ms", value})...)
		if err != nil {
			t.Fatal(err)
		}
		words := reply.([]any)[0].([]any)
		if len(words) != 3 || words[0] != "INVALID" || words[1] != "timeout_ms" {
			t.Errorf("timeout_ms=%q: %v, want INVALID timeout_ms", value, words)
		}
	}
	if after := s.dump(); after != before {
		t.Errorf("a refused call changed something:\n%s", after)
	}
	if r := s.record(s.enqueue(queue.Task{Kind: "k"})); !r.Deadline.IsZero() || len(s.members("deadlines")) != 0 {
		t.Errorf("a task without a timeout has the deadline %v", r.Deadline)
	}
}

func noTimeoutNeverExpires(t *testing.T) {
	s := frozen(t)
	id := s.enqueue(queue.Task{Kind: "k"})
	if r := s.record(id); !r.Deadline.IsZero() || !r.Until.IsZero() {
		t.Errorf("its deadline is %v, bounded by %v", r.Deadline, r.Until)
	}
	if in := s.members("deadlines"); len(in) != 0 {
		t.Errorf("the index of deadlines holds %v", in)
	}
	s.advance(365 * 24 * time.Hour)
	if swept := s.sweep(); swept.TimedOut != 0 {
		t.Errorf("a year later %d timed out", swept.TimedOut)
	}
	if v := s.complete(s.claim()); v.Word != "OK" || v.Status != queue.Completed {
		t.Errorf("a year later the verdict on its completion is %v", v)
	}
}

func optionsAreOptional(t *testing.T) {
	s := running(t)
	if r := s.record(s.enqueue(queue.Task{Kind: "k"})); r.Queue != "default" || r.MaxRetries != 0 || !r.Deadline.IsZero() || r.IdempotencyKey != "" {
		t.Errorf("a task with only a kind: %v", r.Fields)
	}
	full := queue.Task{Kind: "k", Queue: "q", Timeout: 30 * time.Second, MaxRetries: 3, IdempotencyKey: "key"}
	first, err := s.q.Enqueue(t.Context(), full)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.record(first.ID); r.Queue != "q" || r.MaxRetries != 3 || r.IdempotencyKey != "key" || r.Deadline.Sub(r.CreatedAt) != 30*time.Second {
		t.Errorf("a task with all options: %v", r.Fields)
	}
	full.Timeout, full.MaxRetries = time.Hour, 7
	again, err := s.q.Enqueue(t.Context(), full)
	if err != nil || again.New || again.ID != first.ID || !again.Deadline.Equal(first.Deadline) {
		t.Errorf("the same key again: %+v, %v; want the first task with its own deadline", again, err)
	}
}

func expiredIsStrict(t *testing.T) {
	for _, c := range []struct {
		claim string
		after time.Duration
		ends  int
	}{
		{"one ms before its deadline", time.Second - time.Millisecond, 0},
		{"at its deadline", time.Second, 0},
		{"one ms past its deadline", time.Second + time.Millisecond, 1},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s := frozen(t)
			id := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
			s.advance(c.after)
			if r := s.record(id); r.Overdue != (c.ends == 1) {
				t.Errorf("Overdue = %v, want %v", r.Overdue, !r.Overdue)
			}
			if swept := s.sweep(); swept.TimedOut != c.ends {
				t.Errorf("the sweep ended %d tasks, want %d", swept.TimedOut, c.ends)
			}
		})
	}
}

func findExpired(t *testing.T) {
	s := frozen(t)
	due := queue.Task{Kind: "k", Timeout: time.Second, MaxRetries: 3}
	ended := map[string]queue.Status{}
	end := func(status queue.Status, step func(queue.Claim)) {
		id := s.enqueue(due)
		c := s.claim()
		step(c)
		if got := s.record(id).Status; got != status {
			t.Fatalf("the task is %s, want %s", got, status)
		}
		ended[id] = status
	}
	end(queue.Completed, func(c queue.Claim) { s.complete(c) })
	end(queue.Failed, func(c queue.Claim) {
		s.settle(c, queue.Outcome{Verb: queue.Fail, Class: queue.ClassFailed, Error: "no"})
	})
	end(queue.Cancelled, func(c queue.Claim) {
		if _, err := s.q.Cancel(t.Context(), c.ID, "not wanted"); err != nil {
			t.Fatal(err)
		}
	})

	runs := s.enqueue(due)
	s.claim()
	retried := s.enqueue(due)
	s.settle(s.claim(), queue.Outcome{Verb: queue.Fail, Error: "again", Delay: 500 * time.Millisecond})
	waits := s.enqueue(due)
	none := s.enqueue(queue.Task{Kind: "k"})
	later := s.enqueue(queue.Task{Kind: "k", Timeout: time.Minute})
	// Ended tasks that are in the index by mistake must not end again.
	for id := range ended {
		s.rdb.ZAdd(t.Context(), s.q.Root(0)+":deadlines", redis.Z{Score: 1, Member: id})
	}

	s.advance(time.Second + time.Millisecond)
	if swept := s.sweep(); swept.TimedOut != 3 {
		t.Errorf("the sweep ended %d tasks, want 3", swept.TimedOut)
	}
	for _, id := range []string{runs, retried, waits} {
		s.timedOut(id)
	}
	for id, status := range ended {
		if got := s.record(id).Status; got != status {
			t.Errorf("a task that was %s is %s", status, got)
		}
	}
	for _, id := range []string{none, later} {
		if got := s.record(id).Status; got != queue.Pending {
			t.Errorf("a task that is not due is %s", got)
		}
	}
	if in := s.members("deadlines"); !slices.Equal(in, []string{later}) {
		t.Errorf("the index of deadlines holds %v, want %s", in, later)
	}
}

func findExpiredInBatches(t *testing.T) {
	const n = 250
	s := frozen(t)
	// The tasks are not enqueued in the order of their deadlines.
	ids := s.enqueueAll(n, func(i int) queue.Task {
		return queue.Task{Kind: "k", Timeout: time.Duration(1+i*97%n) * time.Millisecond}
	})
	order := make([]string, n)
	for i, id := range ids {
		order[i*97%n] = id
	}
	s.advance(time.Second)
	for _, want := range []struct {
		ended int
		again bool // after a full batch the sweep wants another at once
	}{{100, true}, {200, true}, {250, false}} {
		swept := s.sweep()
		if again := swept.Wait == 0; again != want.again {
			t.Errorf("after %d tasks the sweep returns the wait %v", want.ended, swept.Wait)
		}
		records, err := s.q.GetAll(t.Context(), order)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range records {
			if failed := r.Status == queue.Failed; failed != (i < want.ended) {
				t.Fatalf("%d tasks should have ended, the oldest first, and number %d is %s", want.ended, i, r.Status)
			}
		}
	}
}

func indexHoldsTheLive(t *testing.T) {
	s := frozen(t)
	first := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
	s.enqueue(queue.Task{Kind: "k"})
	if in := s.members("deadlines"); !slices.Equal(in, []string{first}) {
		t.Errorf("with a task PENDING: %v", in)
	}
	c := s.claim()
	if in := s.members("deadlines"); !slices.Equal(in, []string{first}) {
		t.Errorf("with a task RUNNING: %v", in)
	}
	s.complete(c)
	if in := s.members("deadlines"); len(in) != 0 {
		t.Errorf("after its completion: %v", in)
	}
	second := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
	s.advance(2 * time.Second)
	s.sweep()
	s.timedOut(second)
	if in := s.members("deadlines"); len(in) != 0 {
		t.Errorf("after its timeout: %v", in)
	}
}

func timeoutIsIdempotent(t *testing.T) {
	s := frozen(t)
	waits := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
	runs := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second, Priority: 3})
	c := s.claim()
	s.advance(time.Second + time.Millisecond)
	if swept := s.sweep(); swept.TimedOut != 2 {
		t.Fatalf("the first call ended %d tasks, want 2", swept.TimedOut)
	}
	for _, id := range []string{waits, runs} {
		r := s.timedOut(id)
		if !r.DetectedAt.Equal(s.now) {
			t.Errorf("detected_at is %v, want %v", r.DetectedAt, s.now)
		}
	}
	// Every call that meets the task again: the sweep, a cancel, its worker, a second timeout.
	s.advance(time.Second)
	s.sweep() // renews the turn
	before := s.dump()
	if swept := s.sweep(); swept.TimedOut != 0 {
		t.Errorf("the second call ended %d tasks", swept.TimedOut)
	}
	for _, id := range []string{waits, runs} {
		if c, err := s.q.Cancel(t.Context(), id, "late"); err != nil || c.Done || c.Status != queue.Failed || c.Error != fixedError {
			t.Errorf("cancel = %+v, %v", c, err)
		}
	}
	for _, o := range []queue.Outcome{
		{Verb: queue.Complete},
		{Verb: queue.Fail, Error: "late"},
		{Verb: queue.Fail, Class: queue.ClassTimeout},
		{Verb: queue.Release},
	} {
		if v := s.settle(c, o); v.Word != "LOST" || v.Status != queue.Failed {
			t.Errorf("the verdict on %s is %v, want LOST FAILED", o.Verb, v)
		}
	}
	// That a worker reported late is noted and counted, and nothing else is changed.
	after := regexp.MustCompile(`(?m)\\nlate_by=\w+|^ *"default late" = 4\n`).ReplaceAllString(s.dump(), "")
	if diff := redistest.Diff(before, after); diff != "" {
		t.Errorf("the second call changed something:\n%s", diff)
	}
	if n := len(s.timeouts()); n != 2 {
		t.Errorf("%d events for 2 tasks", n)
	}
}

func eventOfNeverStarted(t *testing.T) {
	s := frozen(t)
	never := s.enqueue(queue.Task{Kind: "k", Queue: "elsewhere", Timeout: time.Second})
	runs := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
	s.advance(100 * time.Millisecond)
	s.claim()
	started := s.now
	s.advance(time.Second)
	s.sweep()
	events := s.timeouts()
	if at, there := events[never]["started_at"]; !there || at != "" {
		t.Errorf("started_at of the task that never started is %q (present: %v)", at, there)
	}
	for _, name := range []string{"agent_execution_id", "workflow_run_id"} {
		if owner, there := events[never][name]; there && owner != "" {
			t.Errorf("a task of no agent has the %s %v", name, owner)
		}
	}
	if at := events[runs]["started_at"]; at != strconv.FormatInt(started.UnixMilli(), 10) {
		t.Errorf("started_at of the task that ran is %v, want %d", at, started.UnixMilli())
	}
	if r := s.timedOut(never); !r.StartedAt.IsZero() || r.Epoch != 0 {
		t.Errorf("the record of the task that never started has started_at %v and epoch %d", r.StartedAt, r.Epoch)
	}
}

func eventFields(t *testing.T) {
	s := frozen(t)
	created := s.now
	root := s.enqueue(queue.Task{Kind: "agent"})
	s.claim()
	child := s.enqueue(queue.Task{ID: root + ".1", Kind: "fetch-page", Queue: "default", Timeout: 5 * time.Second, MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}})
	s.advance(time.Second)
	s.settle(s.claim(), queue.Outcome{Verb: queue.Fail, Error: "once"})
	s.advance(time.Second)
	c := s.claim()
	s.advance(3*time.Second + 7*time.Millisecond)
	s.sweep()

	text := func(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }
	want := map[string]any{
		// The fields that the two documents require: id, kind, deadline, start.
		"kind": "task_timed_out", "task_id": child, "task_kind": "fetch-page", "queue": "default",
		"deadline_at": text(created.Add(5 * time.Second)), "started_at": text(created.Add(2 * time.Second)),
		"agent_execution_id": root, "workflow_run_id": root,
		"timeout_type": "execution", "timeout_duration_ms": "5000", "policy_applied": "fail",
		// Further fields.
		"created_at": text(created), "at": text(s.now), "detected_at": text(s.now), "lag_ms": "7",
		"attempt": "2", "epoch": strconv.FormatInt(c.Epoch, 10), "worker": "w",
	}
	got := s.timeouts()[child]
	delete(got, "stream_id")
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the event is\n%v, want\n%v", got, want)
	}
}

func heartbeatDoesNotExtend(t *testing.T) {
	s := frozen(t)
	id := s.enqueue(queue.Task{Kind: "k", Timeout: 30 * time.Second})
	c := s.claim()
	deadline := s.record(id).Deadline
	beat := func() []claim.Stop {
		t.Helper()
		stops, err := claim.Of(s.q).Heartbeat(t.Context(), 0, "w", 15*time.Second, s.seq, []claim.Held{{ID: id, Epoch: c.Epoch}})
		if err != nil {
			t.Fatal(err)
		}
		return stops
	}
	for range 6 {
		s.advance(5 * time.Second)
		if stops := beat(); len(stops) != 0 {
			t.Fatalf("a heartbeat before the deadline returns %v", stops)
		}
		if r := s.record(id); r.Status != queue.Running || !r.Deadline.Equal(deadline) {
			t.Fatalf("after a heartbeat the task is %s, its deadline %v", r.Status, r.Deadline)
		}
	}
	// The lease has 15 s left; the deadline has passed.
	s.advance(time.Millisecond)
	if stops := beat(); len(stops) != 1 || stops[0] != (claim.Stop{ID: id, Epoch: c.Epoch, Reason: "timeout"}) {
		t.Errorf("a heartbeat after the deadline returns %v, want a stop for timeout", stops)
	}
	s.timedOut(id)
}

func lateCompletionIsRefused(t *testing.T) {
	s := frozen(t)
	in := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
	c := s.claim()
	s.advance(time.Second)
	if v := s.complete(c); v.Word != "OK" || v.Status != queue.Completed {
		t.Errorf("at the deadline the verdict on a completion is %v", v)
	}
	if r := s.record(in); r.Status != queue.Completed || string(r.Result) != `"done"` {
		t.Errorf("the task is %s: %s", r.Status, r.Result)
	}

	late := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
	c = s.claim()
	s.advance(time.Second + time.Millisecond)
	if v := s.complete(c); v.Word != "LOST" || v.Status != queue.Failed {
		t.Errorf("one ms late the verdict on a completion is %v, want LOST FAILED", v)
	}
	if r := s.timedOut(late); r.Result != nil {
		t.Errorf("its output was stored: %s", r.Result)
	}
	if len(s.timeouts()) != 1 {
		t.Errorf("%d events, want 1", len(s.timeouts()))
	}

	s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
	s.advance(2 * time.Second)
	if claims := s.fetch(1); len(claims) != 0 {
		t.Errorf("a task past its deadline was handed out")
	}
}

func retryKeepsDeadline(t *testing.T) {
	s := frozen(t)
	id := s.enqueue(queue.Task{Kind: "k", Timeout: 30 * time.Second, MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}})
	deadline := s.record(id).Deadline
	for attempt := 1; attempt <= 3; attempt++ {
		c := s.claim()
		if c.Attempt() != attempt || !c.Deadline.Equal(deadline) {
			t.Fatalf("attempt %d: the claim has attempt %d, deadline %v", attempt, c.Attempt(), c.Deadline)
		}
		s.advance(time.Second)
		v := s.settle(c, queue.Outcome{Verb: queue.Fail, Error: "always"})
		r := s.record(id)
		want := queue.Pending
		if attempt == 3 {
			want = queue.Failed
		}
		if v.Word != "OK" || v.Status != want || r.Status != want || !r.Deadline.Equal(deadline) {
			t.Fatalf("attempt %d: the verdict is %v, the task %s with deadline %v", attempt, v, r.Status, r.Deadline)
		}
		if want == queue.Pending && r.Worker != "" {
			t.Fatalf("attempt %d: the task waits again and has the worker %q", attempt, r.Worker)
		}
		score := s.rdb.ZScore(t.Context(), s.q.Root(0)+":deadlines", id).Val()
		if want == queue.Pending && int64(score) != deadline.UnixMilli() {
			t.Fatalf("attempt %d: the index has %.0f", attempt, score)
		}
	}
	if r := s.record(id); r.Error != "always" || r.Reason != "error" || r.Retries != 2 || r.TimedOut {
		t.Errorf("after the last attempt the record is %v", r.Fields)
	}
	if claims := s.fetch(1); len(claims) != 0 {
		t.Error("there was a fourth execution")
	}
}

func retryRecipe(t *testing.T) {
	s := frozen(t)
	slow := func(timeout time.Duration) string {
		return s.enqueue(queue.Task{Kind: "slow-task", Payload: []byte("input"), Timeout: timeout})
	}
	// The task takes 45 s: too long for the first timeout, and not for the second.
	first := slow(30 * time.Second)
	c := s.claim()
	s.advance(45 * time.Second)
	if v := s.complete(c); v.Accepted() {
		t.Fatalf("the verdict on the first is %v", v)
	}
	_, err := s.result(first)
	if !exceeded(err) {
		t.Fatalf("the first ended with %v, want an error that contains \"exceeded deadline\"", err)
	}
	var timedOut *queue.TaskTimedOutError
	if !errors.As(err, &timedOut) || timedOut.TaskID != first || !timedOut.Deadline.Equal(s.record(first).Deadline) || timedOut.StartedAt.IsZero() {
		t.Fatalf("the first ended with %#v, want a TaskTimedOutError with id, deadline and start", err)
	}

	second := slow(60 * time.Second)
	if second == first {
		t.Fatal("the second is the first task again")
	}
	c = s.claim()
	s.advance(45 * time.Second)
	s.complete(c)
	if result, err := s.result(second); err != nil || string(result) != `"done"` {
		t.Fatalf("the second ended with %s, %v", result, err)
	}
	s.timedOut(first)
}
