package agentwait_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// charge runs a step that counts how often its effect happens, and returns the result of do.
func charge[T any](s *stage, a *agent, do func(ctx context.Context) (T, error)) (T, error) {
	return agentwait.Step(a, "charge", func(ctx context.Context) (T, error) { s.counted++; return do(ctx) })
}

// The result of a step is written even if the attempt has ended meanwhile.
func TestAnEffectHappensOnceAlthoughItsAttemptIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		config worker.Config
		cut    func(shutdown func())
		verb   queue.Verb
		class  queue.Class
	}{
		"by a shutdown":           {worker.Config{}, func(shutdown func()) { shutdown() }, queue.Release, ""},
		"by its worker's timeout": {worker.Config{TaskTimeout: time.Millisecond}, func(func()) {}, queue.Fail, queue.Class(string(queue.ClassTimeout))},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			register := func(w *worker.Worker, shutdown func()) *worker.Worker {
				s.handlers(w)
				agentwait.Handle(w, "agent", func(a *agent, _ string) (string, error) {
					n, err := charge(s, a, func(ctx context.Context) (int, error) {
						if s.counted == 1 {
							c.cut(shutdown)
							<-ctx.Done()
						}
						return s.counted, nil // the effect has succeeded
					})
					if err != nil {
						return "", err
					}
					v, err := agentwait.Await(a, echo(a, "x"))
					return fmt.Sprint(n, v), err
				})
				return w
			}
			ctx, shutdown := context.WithCancel(s.ctx)
			defer shutdown()
			r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: "agent", MaxRetries: 1, OnTimeout: queue.OnTimeoutRetry})
			if err != nil {
				t.Fatal(err)
			}
			ran, err := register(worker.New(s.q, c.config), shutdown).RunOne(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if ran.Report.Verb != c.verb || ran.Report.Class != c.class {
				t.Errorf("the first attempt reported %+v, want %s %s", ran.Report, c.verb, c.class)
			}
			s.w = register(s.another(), nil)
			s.advance(time.Minute)
			s.drain()
			s.completed(r.ID, `"1x"`)
			if s.counted != 1 {
				t.Errorf("the effect happened %d times, want once", s.counted)
			}
		})
	}
}

// If Redis does not answer, a step tries to write its result for 2 s after a shutdown, and then gives up.
func TestAStepThatCannotBeWrittenGivesUpAfterTheEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { rdb.Close() })
	s := stageOn(t, rdb)
	ctx, shutdown := context.WithCancel(s.ctx)
	defer shutdown()
	var ended time.Time
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (int, error) {
		return charge(s, a, func(context.Context) (int, error) {
			proxy.CutRequest(faultproxy.Script(testclock.Library(t, rdb).Handle("remember")), -1)
			shutdown()
			ended = time.Now()
			return 1, nil
		})
	})
	s.enqueue("agent", "")
	ran, err := s.w.RunOne(ctx)
	if took := time.Since(ended); err != nil || ran.Report.Verb != queue.Release || took < time.Second {
		t.Errorf("RunOne = %+v, %v after %v, want a release after a second or more", ran, err, took)
	}
}

// The error of a step is the same in the run in which it fails, and in a replay.
func TestTheErrorOfAStepIsTheSameInAReplay(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		says   string
		is     []error
		isNot  error
		report queue.Outcome
	}{
		"an error is its text": {err: fmt.Errorf("at the bank: %w", errBoom), says: "at the bank: boom", isNot: errBoom,
			report: queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}},
		"DeadlineExceeded is kept": {err: fmt.Errorf("late: %w", context.DeadlineExceeded), says: "late: context deadline exceeded",
			is: []error{context.DeadlineExceeded}, isNot: context.Canceled, report: queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}},
		"Canceled is kept": {err: context.Canceled, says: "context canceled",
			is: []error{context.Canceled}, isNot: context.DeadlineExceeded, report: queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}},
		"Discard is kept": {err: fmt.Errorf("card: %w", worker.Discard(errBoom)), says: "card: boom", isNot: errBoom,
			report: queue.Outcome{Verb: queue.Fail, Class: queue.ClassFailed}},
		"the delay of RetryAfter is kept": {err: worker.RetryAfter(time.Minute, errBoom), says: "boom", isNot: errBoom,
			report: queue.Outcome{Verb: queue.Fail, Class: queue.ClassError, Delay: time.Minute}},
		"an exit code is kept": {err: worker.Fail(3, errBoom), says: "boom", isNot: errBoom,
			report: queue.Outcome{Verb: queue.Fail, Class: queue.ClassError, Code: 3}},
		"Release is kept": {err: worker.Release(time.Minute), says: "released",
			report: queue.Outcome{Verb: queue.Release, Delay: time.Minute}},
		"several lines, and bytes that are not UTF-8": {err: errors.New("one\ntwo\xff"), says: "one\ntwo\xff",
			report: queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}},
		"a very long error is cut": {err: errors.New(strings.Repeat("ü", 1<<14)), says: strings.Repeat("ü", 1<<13),
			report: queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}},
		"ErrSuspended without a wait": {err: agentwait.ErrSuspended, isNot: agentwait.ErrSuspended,
			says:   "invalid argument: ErrSuspended was returned, but no wait has suspended the agent: return ErrSuspended only when a wait returns it, and otherwise an error of your own",
			report: queue.Outcome{Verb: queue.Fail, Class: queue.ClassFailed}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			runs := 0
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				runs++
				v, err := charge(s, a, func(context.Context) (string, error) { return "half", c.err })
				if err == nil || err.Error() != c.says || c.isNot != nil && errors.Is(err, c.isNot) || v != "" {
					t.Errorf("run %d: the step returned %q and %.100v, want no value and %.100s", runs, v, err, c.says)
				}
				for _, is := range c.is {
					if !errors.Is(err, is) {
						t.Errorf("run %d: the error is not %v", runs, is)
					}
				}
				if _, wait := agentwait.Await(a, echo(a, "x")); wait != nil {
					return "", wait
				}
				return "", err
			})
			s.enqueue("agent", "")
			s.run(2)
			ran, err := s.w.RunOne(s.ctx)
			if err != nil || runs != 2 || s.counted != 1 {
				t.Fatalf("%v; %d runs, and the effect happened %d times, want 2 and once", err, runs, s.counted)
			}
			got := ran.Report
			got.ID, got.Epoch, got.Error, got.Result = "", 0, "", nil
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.report) {
				t.Errorf("the agent reported %+v, want %+v", got, c.report)
			}
		})
	}
}

// If the result of a step cannot be stored, the step fails, and the failure is stored. The effect is not
// repeated in a replay.
func TestAnEffectWithoutAResultHappensOnce(t *testing.T) {
	for name, do := range map[string]func(s *stage, a *agent) (says string){
		"not JSON": func(s *stage, a *agent) string {
			_, err := charge(s, a, func(context.Context) (float64, error) { return math.NaN(), nil })
			return err.Error()
		},
		"too large": func(s *stage, a *agent) string {
			_, err := charge(s, a, func(context.Context) (string, error) { return strings.Repeat("x", 1<<20), nil })
			return err.Error()
		},
		"a panic": func(s *stage, a *agent) (says string) {
			defer func() { says = fmt.Sprint(recover()) }()
			charge(s, a, func(context.Context) (int, error) { panic(errBoom) })
			return "no panic"
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			seen := map[string]int{}
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				seen[do(s, a)]++
				for _, what := range []string{"x", "y"} {
					if _, err := agentwait.Await(a, echo(a, what)); err != nil {
						return "", err
					}
				}
				return "done", nil
			})
			id := s.enqueue("agent", "")
			s.drain()
			s.completed(id, `"done"`)
			if s.counted != 1 || len(seen) != 1 || seen["no panic"] > 0 {
				t.Errorf("the effect happened %d times, and the handler saw %v; want once, and one error", s.counted, seen)
			}
		})
	}
}

// The stored failure of a step whose result cannot be stored also prevents that a retry repeats the effect.
func TestARetryDoesNotRepeatAnEffectWithoutAResult(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		_, err := charge(s, a, func(context.Context) (float64, error) { return math.Inf(1), nil })
		return "", worker.RetryAfter(0, errors.New(err.Error()))
	})
	r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: "agent", MaxRetries: 2})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.run(1)
		s.advance(time.Hour)
	}
	if s.is(r.ID, queue.Failed); s.counted != 1 {
		t.Errorf("the effect happened %d times, want once", s.counted)
	}
}
