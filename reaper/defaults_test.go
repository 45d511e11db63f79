package reaper_test

import (
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// A reaper that nothing rings looks again after its fall-back: 500 ms, or what it was told. What the
// machine does beside this test only makes a rest longer, so the shortest of some counts.
func TestAReaperLooksAgainAfterItsFallback(t *testing.T) {
	redistest.NoRace(t, "the detector stretches what it measures")
	for _, test := range []struct {
		claim       string
		config      reaper.Config
		least, most time.Duration
	}{
		{"500 ms by default", reaper.Config{}, 400 * time.Millisecond, 700 * time.Millisecond},
		{"sooner if it is told so", reaper.Config{Fallback: 100 * time.Millisecond}, 80 * time.Millisecond, 300 * time.Millisecond},
		{"later if it is told so", reaper.Config{Fallback: 900 * time.Millisecond}, 720 * time.Millisecond, 1200 * time.Millisecond},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			q := open(t, redistest.Shared(t).Client(t), 1)
			looks := make(chan time.Time, 100)
			test.config.Observe = func(int, reaper.Swept) { looks <- time.Now() }
			run(t, reaper.New(q, test.config))
			await.Receive(t, looks, "the first look") // the next may be soon: the subscription stands by then
			last := await.Receive(t, looks, "the second look")
			var rests []time.Duration
			for range 4 {
				at := await.Receive(t, looks, "another look")
				rests, last = append(rests, at.Sub(last)), at
			}
			if shortest := slices.Min(rests); shortest < test.least || shortest > test.most {
				t.Errorf("it rested %v, the shortest must be %v to %v", rests, test.least, test.most)
			}
		})
	}
}

// A look ends 100 tasks unless it was told otherwise. As long as more is due, the next ones end 250.
func TestALookEndsAHundredAndAPileIsWorkedOffInLargerOnes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		claim  string
		config reaper.Config
		want   []int
	}{
		{"by default", reaper.Config{}, []int{100, 250, 250, 100}},
		{"as it is told", reaper.Config{Batch: 175}, []int{175, 175, 175, 175}},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Shared(t).Client(t)
			q := open(t, rdb, 1)
			due := time.Now().Add(300 * time.Millisecond)
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
				got = append(got, await.Receive(t, ended, "a look"))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("looks ended %v, want %v", got, test.want)
			}
		})
	}
}
