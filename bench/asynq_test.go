package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// The table says that asynq never ends a pending task at its deadline. Here its only worker is
// busy, and a task is still pending seconds after its deadline.
func TestAsynqNeverEndsAPendingTask(t *testing.T) {
	t.Parallel()
	if _, can := Asynq().(PendingDeadlines); can {
		t.Error("Asynq implements PendingDeadlines, want not")
	}
	s := asynqOn(t)
	busy, over := make(chan struct{}), make(chan struct{})
	crew, err := s.crew(1, asynq.Config{Concurrency: 1}, func(ctx context.Context, task *asynq.Task) error {
		if task.Type() == "late" {
			return errors.New("the late task was handled")
		}
		close(busy)
		<-over
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer crew.Stop()
	defer close(over)
	if _, err := s.client.Enqueue(asynq.NewTask("busy", nil)); err != nil {
		t.Fatal(err)
	}
	<-busy
	deadline := time.Now().Add(time.Second)
	late, err := s.client.Enqueue(asynq.NewTask("late", nil), asynq.Deadline(deadline), asynq.MaxRetry(0))
	if err != nil {
		t.Fatal(err)
	}
	inspector := asynq.NewInspector(s.at)
	defer inspector.Close()
	for begin := time.Now(); time.Since(begin) < 4*time.Second; pause(t.Context(), 100*time.Millisecond) {
		info, err := inspector.GetTaskInfo("default", late.ID)
		if err != nil || info.State != asynq.TaskStatePending {
			t.Fatalf("%v after its deadline the task is %v, %v, want it pending", time.Since(deadline), info.State, err)
		}
	}
}

// asynqOn returns asynq on a new server.
func asynqOn(t *testing.T) *asynqSide {
	t.Helper()
	s := &asynqSide{}
	if err := s.Open(t.Context(), Place{"redis://" + redistest.Start(t).Addr, "bench"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A task of a killed process of asynq waits for at least 60 s: its lease, and the allowance for
// clocks. With a shorter bound the lag is that bound.
func TestRecoveryIsMeasuredForCurfewAndBoundedForAsynq(t *testing.T) {
	t.Parallel()
	at := Place{"redis://" + redistest.Start(t).Addr, "bench"}
	for _, test := range []struct {
		s       System
		atLeast time.Duration
	}{
		{Curfew(time.Second), time.Millisecond},
		{Asynq(), 3 * time.Second}, // the bound
	} {
		t.Run(test.s.Name(), func(t *testing.T) {
			if err := test.s.Open(t.Context(), at); err != nil {
				t.Fatal(err)
			}
			defer test.s.Close()
			load := RecoveryLoad{Kills: 1, Within: 3 * time.Second, Holder: holder(at, time.Second)}
			lags, err := standstill(t.Context(), soon{test.s, test.s.(Recoverer)}, load)
			if err != nil || len(lags) != 1 || lags[0] < test.atLeast {
				t.Errorf("the lags are %v, %v, want one of at least %v", lags, err, test.atLeast)
			}
		})
	}
}

// soon is a Recoverer whose workers are killed within a second.
type soon struct {
	System
	Recoverer
}

func (soon) Interval() time.Duration { return time.Second }
