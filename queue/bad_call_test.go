package queue_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestResolveRefusesATaskThatIsNotAPromise(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	ctx := context.Background()
	var rows []badInput
	row := func(claim string, id func(*scene) string, want error, field, advice string) {
		rows = append(rows,
			badInput{"resolve " + claim, func(s *scene) error { _, err := s.q.Resolve(ctx, id(s), nil); return err }, want, field, advice},
			badInput{"reject " + claim, func(s *scene) error { _, err := s.q.Reject(ctx, id(s), "no"); return err }, want, field, advice})
	}
	const advice = "its worker settles this task, and cancel ends it"
	row("a task that waits", func(s *scene) string { return s.pending }, refusal.ErrInvalid, "id", advice)
	row("a task that runs", func(s *scene) string { return s.running }, refusal.ErrInvalid, "id", advice)
	row("a task that has ended", func(s *scene) string { return s.done }, refusal.ErrInvalid, "id", advice)
	row("an unknown task", func(s *scene) string { return s.gone }, refusal.ErrNotFound, "0-0000000000000gone", "no such task")
	row("a task of another partition", func(*scene) string { return "1-01J9ZK3Q8X4M2C7W5T" }, refusal.ErrInvalid, "id", "is in partition 1")
	for claim, id := range badIDs {
		row(claim, func(*scene) string { return id }, refusal.ErrInvalid, "id", whyBad(id, "is not a task's id"))
	}
	longer := strings.Repeat("x", 1001)
	rows = append(rows,
		badInput{"resolve with 1,001 bytes", func(s *scene) error { _, err := s.q.Resolve(ctx, s.promise, []byte(longer)); return err },
			refusal.ErrInvalid, "result", "has 1001 bytes, the limit is 1000: store it elsewhere and send a reference"},
		badInput{"reject with 1,001 bytes", func(s *scene) error { _, err := s.q.Reject(ctx, s.promise, longer); return err },
			refusal.ErrInvalid, "reason", "has 1001 bytes, the limit is 1000"})
	refused(t, rows)
}

// A promise that has ended is not an error of the call: the Resolution says how it ended.
func TestASecondResolutionChangesNothing(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s, ctx := newScene(t, rdb), context.Background()
		before := redistest.Dump(t, rdb, "bad:")
		resolved, err := s.q.Resolve(ctx, s.settled, []byte("second"))
		if err != nil || resolved.Done || resolved.Status != queue.Completed || string(resolved.Result) != "first" {
			t.Errorf("Resolve = %+v, %v; want the first result", resolved, err)
		}
		rejected, err := s.q.Reject(ctx, s.settled, "second")
		if err != nil || rejected.Done || rejected.Status != queue.Completed || string(rejected.Result) != "first" {
			t.Errorf("Reject = %+v, %v; want the first result", rejected, err)
		}
		if after := redistest.Dump(t, rdb, "bad:"); after != before {
			t.Errorf("it changed something:\n%s", redistest.Diff(before, after))
		}
		s.goOn(t)
	})
}

func TestRetryRefusesWhatCannotBeRunAgain(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	ctx := context.Background()
	retry := func(claim string, id func(*scene) string, change func(*queue.Task), want error, field, advice string) badInput {
		return badInput{"retry of " + claim, func(s *scene) error { _, err := s.q.Retry(ctx, id(s), change); return err }, want, field, advice}
	}
	const live = "only a task that has ended can be run again"
	refused(t, []badInput{
		retry("a task that waits", func(s *scene) string { return s.pending }, nil, refusal.ErrInvalid, "task", "is PENDING: "+live),
		retry("a task that runs", func(s *scene) string { return s.running }, nil, refusal.ErrInvalid, "task", "is RUNNING: "+live),
		retry("a promise that is open", func(s *scene) string { return s.promise }, nil, refusal.ErrInvalid, "task", live),
		retry("a timer that is open", func(s *scene) string { return s.timer }, nil, refusal.ErrInvalid, "task", live),
		retry("an unknown task", func(s *scene) string { return s.gone }, nil, refusal.ErrNotFound, "0-0000000000000gone", "no such task"),
		retry("an invalid id", func(*scene) string { return "nonsense" }, nil, refusal.ErrInvalid, "id", "is not a task's id"),
		retry("a task whose copy becomes invalid", func(s *scene) string { return s.done }, func(t *queue.Task) { t.Kind = "two words" },
			refusal.ErrInvalid, "kind", "must be 1 to 128 of"),
	})
}

func TestATimerThatFiredIsNotRunAgain(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s, ctx := newScene(t, rdb), context.Background()
		if _, err := s.q.Cancel(ctx, s.timer, ""); err != nil {
			t.Fatal(err)
		}
		before := redistest.Dump(t, rdb, "bad:")
		_, err := s.q.Retry(ctx, s.timer, nil)
		badInput{want: refusal.ErrInvalid, field: "task", advice: "is a timer, which cannot be run again: enqueue a new one"}.check(t, err)
		if after := redistest.Dump(t, rdb, "bad:"); after != before {
			t.Errorf("it changed something:\n%s", redistest.Diff(before, after))
		}
	})
}

func TestQueueControlsRefuseBadInput(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	ctx := context.Background()
	control := func(claim string, call func(*queue.Queue) error, field, advice string) badInput {
		return badInput{claim, func(s *scene) error { return call(s.q) }, refusal.ErrInvalid, field, advice}
	}
	rate := func(claim string, r queue.Rate, field, advice string) badInput {
		return control(claim, func(q *queue.Queue) error { _, err := q.LimitRate(ctx, "default", r); return err }, field, advice)
	}
	rows := []badInput{
		control("a limit of -1", func(q *queue.Queue) error { _, err := q.LimitRunning(ctx, "default", -1); return err },
			"max running", "must be at least 1, or 0 for no limit"),
		control("a length of -1", func(q *queue.Queue) error { _, err := q.LimitLength(ctx, "default", -1); return err },
			"max length", "must be at least 1, or 0 for no limit"),
		control("a length beyond 2^53", func(q *queue.Queue) error { _, err := q.LimitLength(ctx, "default", math.MaxInt64); return err },
			"max length", "must be at most 2^53"),
		rate("a rate of zero", queue.Rate{Per: time.Second}, "rate", "to stop a queue, Pause it"),
		rate("a negative rate", queue.Rate{N: -1, Per: time.Second}, "rate", "must be at least 1"),
		rate("a rate without a Per", queue.Rate{N: 1}, "rate", "must be 1ms to a year"),
		rate("a Per of less than 1 ms", queue.Rate{N: 1, Per: time.Microsecond}, "rate", "must be 1ms to a year"),
		rate("a negative Per", queue.Rate{N: 1, Per: -time.Second}, "rate", "must be 1ms to a year"),
		rate("a Per of 292 years", queue.Rate{N: 1, Per: math.MaxInt64}, "rate", "must be 1ms to a year"),
		rate("a negative burst", queue.Rate{N: 1, Per: time.Second, Burst: -1}, "burst", "or 0 for as many as the rate"),
		rate("a burst alone", queue.Rate{Burst: 1}, "rate", "must be at least 1"),
		rate("a rate beyond 2^53", queue.Rate{N: math.MaxInt64, Per: time.Second, Burst: 1}, "rate", "must be at most 2^53"),
		control("a reason of 1,001 bytes", func(q *queue.Queue) error { _, err := q.Drain(ctx, "default", strings.Repeat("x", 1001)); return err },
			"reason", "has 1001 bytes, the limit is 1000"),
	}
	ops := map[string]func(*queue.Queue, string) error{
		"pause":         func(q *queue.Queue, name string) error { _, err := q.Pause(ctx, name); return err },
		"resume":        func(q *queue.Queue, name string) error { _, err := q.Resume(ctx, name); return err },
		"limit running": func(q *queue.Queue, name string) error { _, err := q.LimitRunning(ctx, name, 1); return err },
		"limit length":  func(q *queue.Queue, name string) error { _, err := q.LimitLength(ctx, name, 1); return err },
		"limit rate": func(q *queue.Queue, name string) error {
			_, err := q.LimitRate(ctx, name, queue.Rate{N: 1, Per: time.Second})
			return err
		},
		"drain": func(q *queue.Queue, name string) error { _, err := q.Drain(ctx, name, ""); return err },
	}
	const advice = "must be 1 to 128 of A-Z a-z 0-9 . _ -"
	for op, call := range ops {
		rows = append(rows, control(op+" of a queue without a name", func(q *queue.Queue) error { return call(q, "") }, "queue", advice))
	}
	for claim, name := range badNames {
		rows = append(rows,
			control("pause of a queue "+claim, func(q *queue.Queue) error { return ops["pause"](q, name) }, "queue", advice),
			control("drain of a queue "+claim, func(q *queue.Queue) error { return ops["drain"](q, name) }, "queue", advice))
	}
	refused(t, rows)
}

// With a limit below the number of partitions, one of them would never run a task.
func TestALimitThatPartitionsCannotShareIsRefused(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q, ctx := queuetest.Open(t, rdb, queue.Config{Partitions: 4}), context.Background()
		_, err := q.LimitRunning(ctx, "q", 3)
		badInput{want: refusal.ErrInvalid, field: "max running", advice: "3 cannot be shared by 4 partitions"}.check(t, err)
		if keys := rdb.Keys(ctx, "curfew:*:queue*").Val(); len(keys) != 0 {
			t.Errorf("it wrote %v", keys)
		}
		if _, err := q.LimitRunning(ctx, "q", 4); err != nil {
			t.Error(err)
		}
		queuetest.Sound(t, q)
	})
}

// A queue without tasks can be paused, so Pause does not refuse it but reports it.
func TestPauseReportsAnUnknownQueue(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := context.Background()
		if c, err := q.Pause(ctx, "mails"); err != nil || c != (queue.Controlled{}) {
			t.Errorf("Pause = %+v, %v; want a queue that was not known", c, err)
		}
		if c, err := q.Pause(ctx, "mails"); err != nil || c != (queue.Controlled{Known: true}) {
			t.Errorf("Pause again = %+v, %v; want a queue that is known", c, err)
		}
		queuetest.Enqueue(t, q, queue.Task{Queue: "mails"})
		if c, err := q.Resume(ctx, "mails"); err != nil || c != (queue.Controlled{Known: true, Ready: 1}) {
			t.Errorf("Resume = %+v, %v; want one task in line", c, err)
		}
		queuetest.Sound(t, q)
	})
}
