package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// badInput is a call that must be refused and change nothing. Its error must say what to do.
type badInput struct {
	claim  string
	call   func(*scene) error
	want   error
	field  string // the field of an *InvalidError, otherwise a word of the error's text
	advice string // a part of the error's text
}

// scene is a namespace with tasks in every state. Its clock does not move. Payloads, results and
// the like can have at most 1,000 bytes.
type scene struct {
	q                            *queue.Queue
	pending, running, done, gone string
	promise, settled, timer      string
	claim                        queue.Claim // the second claim of running
}

func newScene(t *testing.T, rdb redis.UniversalClient) *scene {
	t.Helper()
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "bad", MaxBytes: 1000, Library: testclock.Library(t, rdb)})
	s, w := &scene{q: q, gone: "0-0000000000000gone"}, &queuetest.Taker{Q: q, Worker: "w1"}

	s.running = queuetest.Enqueue(t, q, queue.Task{Timeout: time.Hour}).ID
	first := w.Take(t, s.running, "default")
	w.Settle(t, queue.Outcome{ID: first.ID, Epoch: first.Epoch, Verb: queue.Release})
	s.claim = w.Take(t, s.running, "default")

	s.done = queuetest.Enqueue(t, q, queue.Task{}).ID
	claim := w.Take(t, s.done, "default")
	w.Settle(t, queue.Outcome{ID: claim.ID, Epoch: claim.Epoch, Verb: queue.Complete, Result: []byte("result")})

	s.pending = queuetest.Enqueue(t, q, queue.Task{Queue: "other", IdempotencyKey: "key", Payload: []byte("first")}).ID
	queuetest.Enqueue(t, q, queue.Task{ID: s.running + ".child", Payload: []byte("first")})

	if err := q.DefineKind(context.Background(), "defined", queue.Defaults{Timeout: time.Hour}); err != nil {
		t.Fatal(err)
	}
	s.promise = queuetest.Enqueue(t, q, queue.Task{Promise: true}).ID
	s.timer = queuetest.Enqueue(t, q, queue.Task{Timer: true, Delay: time.Hour}).ID
	s.settled = queuetest.Enqueue(t, q, queue.Task{Promise: true}).ID
	if r, err := q.Resolve(context.Background(), s.settled, []byte("first")); err != nil || !r.Done {
		t.Fatalf("Resolve = %+v, %v", r, err)
	}
	return s
}

func (s *scene) enqueue(task queue.Task) error {
	if task.Kind == "" {
		task.Kind = "k"
	}
	r, err := s.q.Enqueue(context.Background(), task)
	if err == nil {
		err = fmt.Errorf("accepted: %+v", r)
	}
	return err
}

func (s *scene) settle(o queue.Outcome) error {
	o.ID, o.Epoch = s.claim.ID, s.claim.Epoch
	_, err := claim.Of(s.q).Settle(context.Background(), 0, "w1", queue.NewCall(), []queue.Outcome{o}, claim.Ask{})
	return err
}

// refused runs rows, one after the other on the same scene.
func refused(t *testing.T, rows []badInput) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScene(t, rdb)
		for _, row := range rows {
			t.Run(row.claim, func(t *testing.T) {
				before := redistest.Dump(t, rdb, "bad:")
				err := row.call(s)
				row.check(t, err)
				if after := redistest.Dump(t, rdb, "bad:"); after != before {
					t.Errorf("it changed something:\n%s", redistest.Diff(before, after))
				}
				s.goOn(t)
			})
		}
		queuetest.Sound(t, s.q)
	})
}

func (row badInput) check(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, row.want) {
		t.Fatalf("error %v, want %v", err, row.want)
	}
	var wrong *refusal.InvalidError
	if errors.As(err, &wrong) && wrong.Field != row.field {
		t.Errorf("%v: it names the field %q, want %q", err, wrong.Field, row.field)
	}
	if text := err.Error(); !strings.Contains(text, row.field) || !strings.Contains(text, row.advice) {
		t.Errorf("the error %.200q must contain %.200q and %q", text, row.field, row.advice)
	}
	if strings.ContainsAny(err.Error(), "\r\n\x00") || len(err.Error()) > 500 {
		t.Errorf("the error is not one line of at most 500 bytes: %.200q", err.Error())
	}
}

// goOn makes a valid call, which must succeed.
func (s *scene) goOn(t *testing.T) {
	t.Helper()
	id := queuetest.Enqueue(t, s.q, queue.Task{}).ID
	if c, err := s.q.Cancel(context.Background(), id, ""); err != nil || !c.Done {
		t.Fatalf("the next good call: Cancel = %+v, %v", c, err)
	}
}

func TestEnqueueRefusesBadTimes(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	at := testclock.Start
	task := func(claim string, task queue.Task, field, advice string) badInput {
		return badInput{claim, func(s *scene) error { return s.enqueue(task) }, refusal.ErrInvalid, field, advice}
	}
	rows := []badInput{
		task("a timeout and a deadline", queue.Task{Timeout: time.Second, Deadline: at.Add(time.Second)}, "deadline", "cannot be given together with a timeout"),
		task("a delay and a start", queue.Task{Delay: time.Second, StartAt: at.Add(time.Second)}, "start", "cannot be given together with a delay"),
		task("a deadline that is past by 1 ms", queue.Task{Deadline: at.Add(-time.Millisecond)}, "deadline_at", "is in the past; it is 1800000000000 now"),
		task("a deadline before 1970", queue.Task{Deadline: time.Unix(-1, 0)}, "deadline", "between 1970 and"),
		task("a deadline at the first ms of 1970", queue.Task{Deadline: time.Unix(0, 0)}, "deadline", "between 1970 and"),
		task("a deadline beyond 2^53 ms", queue.Task{Deadline: time.UnixMilli(1<<53 + 1)}, "deadline", "2^53"),
		task("a deadline whose ms overflow to a good one", queue.Task{Deadline: time.Unix(at.Unix()+1<<64/1000+1, 0)}, "deadline", "2^53"),
		task("a start beyond 2^53 ms", queue.Task{StartAt: time.UnixMilli(1<<53 + 1)}, "start", "2^53"),
		task("a start before 1970", queue.Task{StartAt: time.Unix(-1, 0)}, "start", "between 1970 and"),
		task("a start 1 ms after the deadline", queue.Task{StartAt: at.Add(1001 * time.Millisecond), Deadline: at.Add(time.Second)}, "available_at", "start earlier, or give it more time"),
		task("a delay longer than the timeout", queue.Task{Delay: 2 * time.Second, Timeout: time.Second}, "delay_ms", "start earlier, or give it more time"),
	}
	spans := map[string]func(time.Duration) queue.Task{
		"timeout":         func(d time.Duration) queue.Task { return queue.Task{Timeout: d} },
		"queue timeout":   func(d time.Duration) queue.Task { return queue.Task{QueueTimeout: d} },
		"attempt timeout": func(d time.Duration) queue.Task { return queue.Task{AttemptTimeout: d} },
		"delay":           func(d time.Duration) queue.Task { return queue.Task{Delay: d} },
		"retention":       func(d time.Duration) queue.Task { return queue.Task{Retention: d} },
	}
	for field, with := range spans {
		rows = append(rows,
			task("a negative "+field, with(-time.Second), field, "leave it out for none"),
			task("a negative "+field+" below 1 ms", with(-1), field, "leave it out for none"),
			task("a "+field+" below 1 ms", with(time.Millisecond-1), field, "under 1ms, the shortest time that is kept"))
	}
	refused(t, rows)
}

// badNames are names that neither a queue nor a kind can have.
var badNames = map[string]string{
	"of two words":            "two words",
	"of a space":              " ",
	"with a trailing space":   "q ",
	"with a NUL":              "q\x00",
	"that continues as RESP":  "q\r\n*1\r\n$8\r\nFLUSHALL\r\n",
	"with a line break":       "q\n",
	"with a hash tag":         "{1}",
	"with a brace":            "q{",
	"that is a glob":          "*",
	"with a glob":             "q[a-z]?",
	"of 129 bytes":            strings.Repeat("q", 129),
	"of a million bytes":      strings.Repeat("q", 1_000_000),
	"with an umlaut":          "küche",
	"of fullwidth letters":    "ｑ",
	"with an Arabic digit":    "q٣",
	"that is not valid UTF-8": "q\xff",
	"that begins with a dash": "-q",
	"that begins with a dot":  ".q",
	"that begins with _":      "_q",
	"with a quote":            `q"`,
	"with a backslash":        `q\`,
}

func TestEnqueueRefusesBadNames(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	rows := []badInput{
		{"an empty kind", func(s *scene) error { _, err := s.q.Enqueue(context.Background(), queue.Task{}); return err },
			refusal.ErrInvalid, "kind", "must be 1 to 128 of"},
		{"a queue with a colon", func(s *scene) error { return s.enqueue(queue.Task{Queue: "a:b"}) }, refusal.ErrInvalid, "queue", "must be 1 to 128 of"},
		{"a queue with a slash", func(s *scene) error { return s.enqueue(queue.Task{Queue: "a/b"}) }, refusal.ErrInvalid, "queue", "must be 1 to 128 of"},
	}
	for claim, name := range badNames {
		rows = append(rows,
			badInput{"a queue " + claim, func(s *scene) error { return s.enqueue(queue.Task{Queue: name}) },
				refusal.ErrInvalid, "queue", "must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"},
			badInput{"a kind " + claim, func(s *scene) error { return s.enqueue(queue.Task{Kind: name}) },
				refusal.ErrInvalid, "kind", "must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit"})
	}
	refused(t, rows)
}

func TestGoodNamesAreAccepted(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		for _, name := range []string{"q", "Q", "0", "a.b_c-d", "9.", strings.Repeat("q", 128)} {
			queuetest.Enqueue(t, q, queue.Task{Kind: name, Queue: name})
		}
		queuetest.Enqueue(t, q, queue.Task{Kind: "mail:send/v2"})
		queuetest.Sound(t, q)
	})
}

func TestEnqueueRefusesWhatIsTooLarge(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	long, longer := strings.Repeat("x", 1000), strings.Repeat("x", 1001)
	refused(t, []badInput{
		{"a payload of 1,001 bytes", func(s *scene) error { return s.enqueue(queue.Task{Payload: []byte(longer)}) },
			refusal.ErrInvalid, "payload", "has 1001 bytes, the limit is 1000: store it elsewhere and send a reference, or raise Config.MaxBytes"},
		{"headers of 1,001 bytes", func(s *scene) error { return s.enqueue(queue.Task{Headers: map[string]string{"x": long}}) },
			refusal.ErrInvalid, "headers", "have 1001 bytes, the limit is 1000"},
		{"an idempotency key of 513 bytes", func(s *scene) error { return s.enqueue(queue.Task{IdempotencyKey: longer[:513]}) },
			refusal.ErrInvalid, "idempotency key", "has 513 bytes, the limit is 512: hash it"},
		{"a priority of 4", func(s *scene) error { return s.enqueue(queue.Task{Priority: 4}) }, refusal.ErrInvalid, "priority", "must be 0, 1, 2 or 3"},
		{"a priority of -1", func(s *scene) error { return s.enqueue(queue.Task{Priority: -1}) }, refusal.ErrInvalid, "priority", "must be 0, 1, 2 or 3"},
		{"-2 retries", func(s *scene) error { return s.enqueue(queue.Task{MaxRetries: -2}) }, refusal.ErrInvalid, "max retries", "must not be negative; NoRetries (-1) means no retries"},
	})
}

func TestEnqueueRefusesContradictions(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	refused(t, []badInput{
		{"an idempotency key with another payload", func(s *scene) error {
			return s.enqueue(queue.Task{IdempotencyKey: "key", Payload: []byte("second"), Queue: "other"})
		}, refusal.ErrConflict, "idempotency key", "other content"},
		{"an idempotency key with another kind", func(s *scene) error {
			return s.enqueue(queue.Task{Kind: "other", IdempotencyKey: "key", Payload: []byte("first")})
		}, refusal.ErrConflict, "idempotency key", "other content"},
		{"a child with the id of another child", func(s *scene) error {
			return s.enqueue(queue.Task{ID: s.running + ".child", Payload: []byte("second")})
		}, refusal.ErrConflict, "child", "of this name with other content"},
		{"a child with an idempotency key", func(s *scene) error {
			return s.enqueue(queue.Task{ID: s.running + ".other", IdempotencyKey: "key"})
		}, refusal.ErrInvalid, "idempotency key", "cannot be given for a child: its id is its idempotency key"},
		{"the id of another root task", func(s *scene) error { return s.enqueue(queue.Task{ID: s.pending, Payload: []byte("second")}) },
			refusal.ErrConflict, "this id", "has another kind, queue or payload"},
		{"a name of 129 bytes", func(s *scene) error { return s.enqueue(queue.Task{Name: strings.Repeat("x", 129)}) },
			refusal.ErrInvalid, "name", "has 129 bytes: it must be 1 to 128 bytes of any text; hash a longer one"},
		{"a name and an idempotency key", func(s *scene) error { return s.enqueue(queue.Task{Name: "a", IdempotencyKey: "b"}) },
			refusal.ErrInvalid, "idempotency key", "cannot be given together with a name"},
		{"a child with a name", func(s *scene) error { return s.enqueue(queue.Task{ID: s.running + ".x", Name: "a"}) },
			refusal.ErrInvalid, "name", "cannot be given for a child"},
		{"a child of an unknown task", func(s *scene) error { return s.enqueue(queue.Task{ID: s.gone + ".child"}) },
			refusal.ErrNotFound, "owner 0-0000000000000gone", "no such task"},
		{"a child of a task that has ended", func(s *scene) error { return s.enqueue(queue.Task{ID: s.done + ".child"}) },
			refusal.ErrOwnerEnded, "owner", "has ended"},
	})
}

// badIDs are texts that are not ids of tasks.
var badIDs = map[string]string{
	"nothing":                         "",
	"a word":                          "nonsense",
	"a number":                        "7",
	"a partition alone":               "0-",
	"no partition":                    "-0ABC",
	"a partition with a leading zero": "00-0ABC",
	"a partition with a sign":         "+0-0ABC",
	"a partition that overflows":      "18446744073709551616-0ABC",
	"a name that begins oddly":        "0--ABC",
	"a child without a name":          "0-0ABC.",
	"a child whose name begins oddly": "0-0ABC.-x",
	"a child whose name is odd":       "0-0ABC._x",
	"a child between two dots":        "0-0ABC..x",
	"a child with a long name":        "0-0ABC." + strings.Repeat("x", 600),
	"a line break":                    "0-0ABC\r\nDEL x",
	"a hash tag":                      "0-{1}",
	"a glob":                          "0-*",
	"a NUL":                           "0-0ABC\x00",
	"an umlaut":                       "0-ü",
	"a key":                           "curfew:{0}:task:0-0ABC",
	"513 bytes":                       "0-" + strings.Repeat("x", 511),
	"a million bytes":                 "0-" + strings.Repeat("x", 1_000_000),
	"a UUID":                          "f47ac10b-58cc-4372-a567-0e02b2c3d479",
}

// notAnID is why a call of partition 0 refuses an id.
const notAnID = "must be the partition, 0, a dash, letters and digits; then for each child a dot and a name of A-Z a-z 0-9 _ - that begins with a letter or digit"

// whyBad returns why an id of badIDs is refused: its length, or else the given reason.
func whyBad(id, reason string) string {
	if len(id) > 512 {
		why := fmt.Sprintf("has %d bytes, the limit is 512", len(id))
		if strings.Contains(id, ".") {
			why += ": it begins with the id of its owner, so give the child, or a task above it, a shorter name"
		}
		return why
	}
	return reason
}

func TestAnInvalidIDIsRefused(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	var rows []badInput
	row := func(claim, id string, want error, advice string) {
		ctx := context.Background()
		field := "id"
		if errors.Is(want, refusal.ErrNotFound) {
			field = id
		}
		rows = append(rows,
			badInput{"get " + claim, func(s *scene) error { _, err := s.q.Get(ctx, id); return err }, want, field, advice},
			badInput{"cancel " + claim, func(s *scene) error { _, err := s.q.Cancel(ctx, id, ""); return err }, want, field, advice},
			badInput{"delete " + claim, func(s *scene) error { _, err := s.q.Delete(ctx, id); return err }, want, field, advice},
			badInput{"result of " + claim, func(s *scene) error { _, err := s.q.Result(ctx, id); return err }, want, field, advice})
		if want == refusal.ErrInvalid {
			rows = append(rows,
				badInput{"get a list with " + claim, func(s *scene) error { _, err := s.q.GetAll(ctx, []string{s.pending, id}); return err }, want, field, advice},
				badInput{"delete a list with " + claim, func(s *scene) error { _, err := s.q.DeleteAll(ctx, []string{s.pending, id}); return err }, want, field, advice},
				badInput{"cancel a list with " + claim, func(s *scene) error { _, err := s.q.CancelAll(ctx, []string{s.pending, id}, ""); return err }, want, field, advice})
		}
	}
	for claim, id := range badIDs {
		row(claim, id, refusal.ErrInvalid, whyBad(id, "is not a task's id: it is the partition, a dash, letters and digits"))
	}
	row("the id of another partition", "1-01J9ZK3Q8X4M2C7W5T", refusal.ErrInvalid, "is in partition 1, but this namespace has 1 partitions")
	row("an id that is nested too deep", "0-a"+strings.Repeat(".a", 17), refusal.ErrInvalid, "is nested deeper than 16")
	row("an unknown id", "0-0000000000000gone", refusal.ErrNotFound, "no such task")
	row("an unknown child", "0-0000000000000gone.child", refusal.ErrNotFound, "no such task")
	refused(t, rows)
}

func TestCancelRefusesALongReason(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	refused(t, []badInput{{"a reason of 1,001 bytes", func(s *scene) error {
		_, err := s.q.Cancel(context.Background(), s.pending, strings.Repeat("x", 1001))
		return err
	}, refusal.ErrInvalid, "reason", "has 1001 bytes, the limit is 1000"}})
}

func TestSettleRefusesABadOutcome(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	longer := strings.Repeat("x", 1001)
	outcome := func(claim string, o queue.Outcome, field, advice string) badInput {
		return badInput{claim, func(s *scene) error { return s.settle(o) }, refusal.ErrInvalid, field, advice}
	}
	refused(t, []badInput{
		outcome("no verb", queue.Outcome{}, "verb", "must be complete, fail or release"),
		outcome("an unknown verb", queue.Outcome{Verb: "finish"}, "verb", `"finish" must be complete, fail or release`),
		outcome("a verb in capitals", queue.Outcome{Verb: "COMPLETE"}, "verb", "must be complete, fail or release"),
		outcome("a verb of RESP", queue.Outcome{Verb: "complete\r\n"}, "verb", "must be complete, fail or release"),
		outcome("an unknown class", queue.Outcome{Verb: queue.Fail, Class: "fatal"}, "class", `"fatal" must be error, failed, timeout or deadline`),
		outcome("an unknown answer of the retry expression", queue.Outcome{Verb: queue.Fail, Retry: "maybe"}, "retry", `"maybe" must be empty, retry, fail, or fail: with a reason`),
		outcome("no reason why it could not be evaluated", queue.Outcome{Verb: queue.Fail, Retry: "fail: "}, "retry", "with a reason"),
		outcome("a negative delay", queue.Outcome{Verb: queue.Release, Delay: -time.Second}, "delay", "must not be negative"),
		outcome("a result of 1,001 bytes", queue.Outcome{Verb: queue.Complete, Result: []byte(longer)}, "result", "store it elsewhere and return a reference"),
		outcome("an error of 1,001 bytes", queue.Outcome{Verb: queue.Fail, Error: longer}, "error", "has 1001 bytes, the limit is 1000"),
	})
}

// An outcome of a claim that the worker no longer holds is not an error of the call. The verdict
// says what the task is now, and nothing changes.
func TestAnOutcomeOfAnotherClaimChangesNothing(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	for _, row := range []struct {
		claim string
		of    func(*scene) (id string, epoch int64)
		want  queue.Verdict
	}{
		{"an older epoch", func(s *scene) (string, int64) { return s.running, s.claim.Epoch - 1 }, queue.Verdict{Word: "LOST", Status: queue.Running}},
		{"a newer epoch", func(s *scene) (string, int64) { return s.running, s.claim.Epoch + 1 }, queue.Verdict{Word: "LOST", Status: queue.Running}},
		{"a negative epoch", func(s *scene) (string, int64) { return s.running, -1 }, queue.Verdict{Word: "LOST", Status: queue.Running}},
		{"a task that no worker holds", func(s *scene) (string, int64) { return s.pending, 0 }, queue.Verdict{Word: "LOST", Status: queue.Pending}},
		{"a task that has ended", func(s *scene) (string, int64) { return s.done, 1 }, queue.Verdict{Word: "LOST", Status: queue.Completed}},
		{"an unknown task", func(s *scene) (string, int64) { return s.gone, 1 }, queue.Verdict{Word: "MISSING"}},
		{"a foreign id", func(s *scene) (string, int64) { return "another:{7}:task:*", 1 }, queue.Verdict{Word: "MISSING"}},
		{"no id", func(s *scene) (string, int64) { return "", 1 }, queue.Verdict{Word: "MISSING"}},
	} {
		t.Run(row.claim, func(t *testing.T) {
			redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
				s := newScene(t, rdb)
				w := &queuetest.Taker{Q: s.q, Worker: "w1"}
				id, epoch := row.of(s)
				for _, o := range []queue.Outcome{
					{Verb: queue.Complete, Result: []byte("late")}, {Verb: queue.Fail, Error: "late"}, {Verb: queue.Release},
				} {
					before := redistest.Dump(t, rdb, "bad:")
					o.ID, o.Epoch = id, epoch
					if got := w.Report(t, queue.NewCall(), o); got != row.want {
						t.Errorf("%s = %+v, want %+v", o.Verb, got, row.want)
					}
					if after := redistest.Dump(t, rdb, "bad:"); after != before {
						t.Errorf("%s changed something:\n%s", o.Verb, redistest.Diff(before, after))
					}
				}
				s.goOn(t)
			})
		})
	}
}

func TestASecondSettlementIsRefused(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScene(t, rdb)
		w := &queuetest.Taker{Q: s.q, Worker: "w1"}
		o := queue.Outcome{ID: s.running, Epoch: s.claim.Epoch, Verb: queue.Complete, Result: []byte("first")}
		w.Report(t, "call-1", o)
		before := redistest.Dump(t, rdb, "bad:")
		o.Result = []byte("second")
		if got, want := w.Report(t, "call-1", o), (queue.Verdict{Word: "OK", Status: queue.Completed}); got != want {
			t.Errorf("the same call again = %+v, want the first verdict %+v", got, want)
		}
		for _, verb := range []queue.Verb{queue.Complete, queue.Fail, queue.Release} {
			o.Verb = verb
			if got, want := w.Report(t, "call-2", o), (queue.Verdict{Word: "LOST", Status: queue.Completed}); got != want {
				t.Errorf("another call's %s = %+v, want %+v", verb, got, want)
			}
		}
		if after := redistest.Dump(t, rdb, "bad:"); after != before {
			t.Errorf("a second settlement changed something:\n%s", redistest.Diff(before, after))
		}
	})
}

func TestAHeartbeatStopsAttemptsThatAreNotHeld(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScene(t, rdb)
		held := []claim.Held{{ID: s.running, Epoch: s.claim.Epoch}, {ID: s.running, Epoch: 1, Progress: "x"}, {ID: s.gone, Epoch: 1, Progress: "x"},
			{ID: s.pending, Epoch: 0, Progress: "x"}, {ID: s.done, Epoch: 1, Progress: "x"}, {ID: "rubbish\r\n*", Epoch: -7, Progress: "x"}, {ID: "", Epoch: 0, Progress: "x"}}
		beat := func() []claim.Stop {
			stops, err := claim.Of(s.q).Heartbeat(context.Background(), 0, "w1", time.Minute, 0, held)
			if err != nil {
				t.Fatal(err)
			}
			return stops
		}
		before := redistest.Dump(t, rdb, "bad:")
		want := []claim.Stop{{ID: s.running, Epoch: 1, Reason: "lost"}, {ID: s.gone, Epoch: 1, Reason: "gone"}, {ID: s.pending, Epoch: 0, Reason: "lost"}, {ID: s.done, Epoch: 1, Reason: "completed"},
			{ID: "rubbish\r\n*", Epoch: -7, Reason: "gone"}, {ID: "", Epoch: 0, Reason: "gone"}}
		if got := beat(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("Heartbeat = %+v, want %+v", got, want)
		}
		if after := redistest.Dump(t, rdb, "bad:"); after != before { // the lease is renewed at the same instant
			t.Errorf("it changed something:\n%s", redistest.Diff(before, after))
		}
		s.goOn(t)
	})
}

func TestAnEmptyListIsNoError(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := context.Background()
		if got, err := q.EnqueueAll(ctx, nil); len(got) != 0 || err != nil {
			t.Errorf("EnqueueAll = %v, %v", got, err)
		}
		if got, err := q.GetAll(ctx, nil); len(got) != 0 || err != nil {
			t.Errorf("GetAll = %v, %v", got, err)
		}
		if got, err := q.CancelAll(ctx, nil, ""); len(got) != 0 || err != nil {
			t.Errorf("CancelAll = %v, %v", got, err)
		}
		if got, err := q.DeleteAll(ctx, nil); len(got) != 0 || err != nil {
			t.Errorf("DeleteAll = %v, %v", got, err)
		}
		if got, err := claim.Of(q).Settle(ctx, 0, "w", queue.NewCall(), nil, claim.Ask{}); len(got.Verdicts) != 0 || err != nil {
			t.Errorf("Settle = %+v, %v", got, err)
		}
	})
}
