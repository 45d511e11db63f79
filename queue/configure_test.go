package queue_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// A program that opened the namespace before writes events of the new level with its next call.
func TestConfigureAppliesToAllProgramsAtOnce(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		config := queue.Config{Namespace: redistest.Namespace(t), Partitions: 3}
		operator, producer := queuetest.Open(t, rdb, config), queuetest.Open(t, rdb, config)
		told := func() (n int) {
			t.Helper()
			for range 6 { // root tasks go to the partitions in turn
				queuetest.Enqueue(t, producer, queue.Task{})
			}
			batch, err := events.Read(t.Context(), producer, events.Oldest, 1000, 0)
			if err != nil {
				t.Fatal(err)
			}
			return len(batch.Events)
		}
		for i, step := range []struct {
			queue.Settings
			want int
		}{
			{queue.Settings{}, 0},
			{queue.Settings{Events: queue.EventsAll}, 6},
			{queue.Settings{EventMiB: 2}, 12},
			{queue.Settings{Events: queue.EventsNone}, 12},
		} {
			if err := operator.Configure(t.Context(), step.Settings); err != nil {
				t.Fatal(err)
			}
			if n := told(); n != step.want {
				t.Errorf("step %d: %d events after %+v, want %d", i, n, step.Settings, step.want)
			}
		}
		before := redistest.Dump(t, rdb, config.Namespace)
		for _, bad := range []struct {
			field, value string
			queue.Settings
		}{
			{"events", `"ALL" must be all, terminal or none`, queue.Settings{Events: "ALL"}},
			{"event MiB", "-1 must be", queue.Settings{EventMiB: -1}},
			{"event MiB", "65537 must be", queue.Settings{EventMiB: 65537, Events: queue.EventsAll}},
			{"figures", `"yes" must be on or off`, queue.Settings{Figures: "yes"}},
			{"default timeout", "-1s must be at least 1ms, or None", queue.Settings{DefaultTimeout: -time.Second}},
			{"default timeout", "1µs must be at least 1ms, or None", queue.Settings{DefaultTimeout: time.Microsecond, Events: queue.EventsAll}},
		} {
			badInput{want: refusal.ErrInvalid, field: bad.field, advice: bad.value}.check(t, operator.Configure(t.Context(), bad.Settings))
		}
		if diff := redistest.Diff(before, redistest.Dump(t, rdb, config.Namespace)); diff != "" {
			t.Errorf("refused settings changed:\n%s", diff)
		}
	})
}

func TestADefaultTimeoutComesAndGoes(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		if err := q.DefineKind(t.Context(), "unbounded", queue.Defaults{Timeout: queue.None}); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			queue.Settings
			task queue.Task
			want time.Duration
		}{
			{queue.Settings{}, queue.Task{}, 0},
			{queue.Settings{DefaultTimeout: time.Hour}, queue.Task{}, time.Hour},
			{queue.Settings{}, queue.Task{Kind: "unbounded"}, 0},
			{queue.Settings{Figures: "off"}, queue.Task{}, time.Hour},
			{queue.Settings{}, queue.Task{Timeout: time.Minute}, time.Minute},
			{queue.Settings{}, queue.Task{Timeout: queue.None}, 0},
			{queue.Settings{}, queue.Task{Delay: time.Hour}, 2 * time.Hour},
			{queue.Settings{}, queue.Task{Promise: true}, 0},
			{queue.Settings{DefaultTimeout: 100 * 365 * 24 * time.Hour}, queue.Task{}, 100 * 365 * 24 * time.Hour},
			{queue.Settings{DefaultTimeout: queue.None}, queue.Task{}, 0},
		} {
			if err := q.Configure(t.Context(), step.Settings); err != nil {
				t.Fatal(err)
			}
			for range q.Partitions() {
				r := queuetest.Enqueue(t, q, step.task)
				got := time.Duration(0)
				if !r.Deadline.IsZero() {
					got = r.Deadline.Sub(get(t, q, r.ID).CreatedAt)
				}
				if got != step.want {
					t.Errorf("%+v after %+v has %v, want %v", step.task, step.Settings, got, step.want)
				}
			}
		}
	})
}

// If two programs open a namespace with different settings, those of the program that created it apply. The other program
// logs a warning.
func TestOpenWarnsOfOtherSettings(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		namespace := redistest.Namespace(t)
		for _, row := range []struct {
			claim string
			queue.Config
			want string // "": no warning
		}{
			{"the program that creates it", queue.Config{Partitions: 2, Events: queue.EventsAll, Figures: "off"}, ""},
			{"no settings", queue.Config{}, ""},
			{"the same settings", queue.Config{Events: queue.EventsAll, EventMiB: 64, Figures: "off"}, ""},
			{"another level", queue.Config{Events: queue.EventsNone}, "events is all, not none"},
			{"the default, said in words", queue.Config{Events: queue.EventsTerminal}, "events is all, not terminal"},
			{"all others", queue.Config{Events: queue.EventsNone, EventMiB: 8, Figures: "on"},
				"events is all, not none; event_mib is 64, not 8; figures is off, not on"},
		} {
			var log bytes.Buffer
			row.Config.Namespace, row.Config.Logger = namespace, slog.New(slog.NewTextHandler(&log, nil))
			if _, err := queue.Open(context.Background(), rdb, row.Config); err != nil {
				t.Fatal(err)
			}
			n := strings.Count(log.String(), "other settings")
			if row.want == "" && n != 0 || row.want != "" && (n != 1 || !strings.Contains(log.String(), `settings="`+row.want+`"`) || !strings.Contains(log.String(), "namespace="+namespace)) {
				t.Errorf("%s: it logged %q, want one warning with %q", row.claim, log.String(), row.want)
			}
		}
	})
}
