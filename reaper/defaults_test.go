package reaper_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// A reaper rests for Config.Fallback between two sweeps, 500 ms by default, if nothing is due and no alarm comes. Alarms are held
// back: one of them comes as soon as the reaper has subscribed, which can be long after its first sweep.
func TestAReaperRestsForItsFallback(t *testing.T) {
	for _, test := range []struct {
		claim  string
		config reaper.Config
		want   time.Duration
	}{
		{"500 ms by default", reaper.Config{}, 500 * time.Millisecond},
		{"a shorter fall-back", reaper.Config{Fallback: 100 * time.Millisecond}, 100 * time.Millisecond},
		{"a longer fall-back", reaper.Config{Fallback: 900 * time.Millisecond}, 900 * time.Millisecond},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			link := faultproxy.Start(t, redistest.Shared(t).Addr)
			link.Hold(faultproxy.Command("subscribe"))
			rdb := redis.NewClient(&redis.Options{Addr: link.Addr})
			t.Cleanup(func() { rdb.Close() })
			q := open(t, rdb, 1)
			type sweep struct {
				at   time.Time
				wait time.Duration
			}
			sweeps := make(chan sweep, 100)
			test.config.Observe = func(_ int, s reaper.Swept) { sweeps <- sweep{time.Now(), s.Wait} }
			run(t, reaper.New(q, test.config))
			last := await.Receive(t, sweeps, "the first sweep")
			for range 3 {
				next := await.Receive(t, sweeps, "another sweep")
				// A busy machine can only make a pause longer.
				if pause := next.at.Sub(last.at); pause < test.want || last.wait != test.want {
					t.Errorf("a pause of %v after a sweep whose wait is %v, want %v", pause, last.wait, test.want)
				}
				last = next
			}
		})
	}
}

// A reaper with values in its Config that Redis would refuse still sweeps.
func TestAReaperSweepsWithAnyConfig(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		claim  string
		config reaper.Config
	}{
		{"a batch over the limit", reaper.Config{Batch: 5000}},
		{"a fall-back under 1 ms", reaper.Config{Fallback: time.Microsecond}},
		{"a name of several words", reaper.Config{Name: "the reaper"}},
		{"a name that begins with a sign", reaper.Config{Name: "_é"}},
		{"a name of signs", reaper.Config{Name: "-"}},
		{"a long name", reaper.Config{Name: strings.Repeat("x", 1000)}},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			q := open(t, redistest.Shared(t).Client(t), 1)
			sweeps := make(chan reaper.Swept, 1)
			test.config.Observe = func(_ int, s reaper.Swept) {
				select {
				case sweeps <- s:
				default:
				}
			}
			run(t, reaper.New(q, test.config))
			await.Receive(t, sweeps, "a sweep")
		})
	}
}

// A sweep never ends more than 250 tasks of a clock.
func TestASweepEndsNoMoreThan250Tasks(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	q := open(t, rdb, 1)
	due := time.Now().Add(3 * time.Second) // a call that is repeated after a second must not find them late
	enqueue(t, q, slices.Repeat([]queue.Task{{Kind: "k", Deadline: due}}, 300)...)
	await.Until(t, "all are due", func() bool {
		now, err := rdb.Time(t.Context()).Result()
		return err == nil && now.After(due.Add(2*time.Millisecond))
	})
	for _, want := range []int{250, 50} {
		if s, err := reaper.Sweep(t.Context(), q, 0, "r", 5000, time.Second); err != nil || s.TimedOut != want {
			t.Errorf("Sweep with a batch of 5000 = %+v, %v, want %d timed out", s, err, want)
		}
	}
}

// A sweep ends Config.Batch tasks, 100 by default. By default the sweeps that follow end 250 each
// while more tasks are due.
func TestTheFirstSweepEndsAHundredTasksAndTheNextOnesMore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		claim  string
		config reaper.Config
		want   []int
	}{
		{"by default", reaper.Config{}, []int{100, 250, 250, 100}},
		{"with a Batch", reaper.Config{Batch: 175}, []int{175, 175, 175, 175}},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Shared(t).Client(t)
			q := open(t, rdb, 1)
			due := time.Now().Add(3 * time.Second)
			enqueue(t, q, slices.Repeat([]queue.Task{{Kind: "k", Deadline: due}}, 700)...)
			await.Until(t, "all are due", func() bool {
				now, err := rdb.Time(t.Context()).Result()
				return err == nil && now.After(due.Add(2*time.Millisecond))
			})
			ended := make(chan int, 100)
			test.config.Observe = func(_ int, s reaper.Swept) {
				if s.TimedOut > 0 {
					ended <- s.TimedOut
				}
			}
			run(t, reaper.New(q, test.config))
			var got []int
			for range test.want {
				got = append(got, await.Receive(t, ended, "a sweep"))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the sweeps ended %v tasks, want %v", got, test.want)
			}
		})
	}
}
