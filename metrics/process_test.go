package metrics_test

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

func TestTheCallsOfAProcessAreMeasured(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	one, other := metrics.NewProcess(q, metrics.Config{}), metrics.NewProcess(q, metrics.Config{Prefix: "b_"})
	for range 3 {
		queuetest.Enqueue(t, q, queue.Task{})
	}
	if _, err := reaper.Sweep(t.Context(), q, 0, "r", 100, time.Second); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	q.Get(ended, "0-x")
	for prefix, all := range map[string]map[string]uint64{"curfew_": {}, "b_": {}} {
		families := gather(t, one)
		if prefix == "b_" {
			families = gather(t, other)
		}
		for _, m := range families[prefix+"script_duration_seconds"].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "script" {
					all[l.GetValue()] = m.GetHistogram().GetSampleCount()
				}
			}
		}
		if all["enqueue"] != 3 || all["sweep"] != 1 {
			t.Errorf("the calls that %s measured are %v, want 3 of enqueue and 1 of sweep", prefix, all)
		}
		if n := value(families, prefix+"script_errors_total", "code", "cancelled"); n != 1 {
			t.Errorf("%v calls were cancelled, want 1: %v", n, families[prefix+"script_errors_total"])
		}
		if n, full := value(families, prefix+"reaper_batches_total"), value(families, prefix+"reaper_batch_full_total"); n != 1 || full != 0 {
			t.Errorf("%v sweeps, %v of them full, want 1 and 0", n, full)
		}
		if offset := value(families, prefix+"clock_offset_seconds"); families[prefix+"clock_offset_seconds"] == nil || math.Abs(offset) > 0.25 {
			t.Errorf("the clock of this machine is %v s ahead of itself", offset)
		}
	}
}

func TestAFullSweepIsCounted(t *testing.T) {
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	process := metrics.NewProcess(q, metrics.Config{})
	for range 3 {
		queuetest.Enqueue(t, q, queue.Task{Timeout: time.Millisecond})
	}
	await.Until(t, "a sweep of one task leaves others", func() bool {
		if _, err := reaper.Sweep(t.Context(), q, 0, "r", 1, time.Second); err != nil {
			t.Fatal(err)
		}
		return value(gather(t, process), "curfew_reaper_batch_full_total") >= 1
	})
}

// The workers of a process share a reaper, which no program configures.
func TestTheSharedReaperIsCounted(t *testing.T) {
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	process := metrics.NewProcess(q, metrics.Config{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := worker.New(q, worker.Config{Logger: slog.New(slog.DiscardHandler)})
		w.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { return nil, nil })
		w.Run(ctx)
	}()
	await.Until(t, "the reaper of the worker has swept", func() bool { return value(gather(t, process), "curfew_reaper_batches_total") > 0 })
	stop()
	<-done
}

// A clock that Redis does not answer about has no value.
func TestTheClockOfADeadRedisHasNoValue(t *testing.T) {
	server := redistest.Start(t)
	q := queuetest.Open(t, server.Client(t), queue.Config{})
	process := metrics.NewProcess(q, metrics.Config{Timeout: 500 * time.Millisecond})
	server.Kill()
	all := gather(t, process)
	if all["curfew_clock_offset_seconds"] != nil || all["curfew_build_info"] == nil {
		t.Errorf("the metrics are %v, want no offset", all)
	}
}
