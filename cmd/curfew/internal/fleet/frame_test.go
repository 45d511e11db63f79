package fleet

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

// hostile are names that nobody but another program can make.
var hostile = []string{"\x1b[2J\x1b[H", "line\nfeed", "\u202egnp.exe", "表表表表", "a\tb", "\x9b31m", "nul\x00", strings.Repeat("long", 60)}

func exampleView() view {
	now := time.UnixMilli(1700000000000)
	v := view{namespace: "shop\x1b]0;x\a", lags: []time.Duration{time.Millisecond, 2 * time.Millisecond, 40 * time.Millisecond},
		due: inspect.DueCounts{Now: now, Within: 5 * time.Minute, Buckets: make([]int64, viewBuckets), Overdue: 3, Later: 9}}
	for i := range v.due.Buckets {
		v.due.Buckets[i] = int64(i % 7 * i)
	}
	v.queues = []lines.Queue{{Queue: "mail", Ready: 1234567, Running: 20, Completed: 99, MaxRunning: 20, Rate: 10, Per: time.Second, Burst: 10},
		{Queue: "default", Ready: 1, TimedOut: 7, Failed: 8}, {Queue: "idle", Paused: 1}}
	for i, name := range hostile {
		v.queues = append(v.queues, lines.Queue{Queue: name, Running: int64(i)})
		v.next = append(v.next, inspect.Due{ID: "0-A" + name, Queue: name, Status: queue.Status(name), Deadline: now.Add(time.Duration(i-1) * time.Second)})
		v.workers = append(v.workers, lines.Worker{Worker: name, State: name, Running: i, Concurrency: 10, Queues: []lines.Served{{Queue: name, Weight: 1}, {Queue: "mail", Weight: 3}}})
	}
	return v
}

var update = flag.Bool("update", false, "write the frames to testdata")

// Each file of testdata is a frame. Read it before you commit it.
func TestFrames(t *testing.T) {
	for name, l := range map[string]look{
		"80x24":        {width: 80, height: 24, every: "500ms"},
		"40x10":        {width: 40, height: 10, every: "500ms", paused: true},
		"120x50 once":  {width: 120, height: 50},
		"80x24 sorted": {width: 80, height: 24, every: "500ms", order: 2, skip: 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(draw(exampleView(), l), "\n") + "\n"
			path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "_")+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("the frame is\n%s\nwant\n%s\n%v (write it with -update)", got, want, err)
			}
		})
	}
}

// Whatever the size, a frame fits on the screen, and nothing in it controls the terminal.
func TestAFrameFitsOnEveryScreen(t *testing.T) {
	full := exampleView()
	broken := full
	broken.err = errors.New("no \x1b[2J Redis")
	for _, v := range []view{full, broken, {}, {due: inspect.DueCounts{Buckets: make([]int64, viewBuckets)}}} {
		for width := range 130 {
			for height := range 40 {
				for _, every := range []string{"", "1s"} {
					lines := draw(v, look{width: width, height: height, every: every, skip: 3})
					if len(lines) > height {
						t.Fatalf("%dx%d: %d lines", width, height, len(lines))
					}
					for _, line := range lines {
						if utf8.RuneCountInString(line) > width || strings.ContainsFunc(line, func(r rune) bool {
							return r < ' ' || r > '~' && !strings.ContainsRune("▁▂▃▄▅▆▇█µ", r)
						}) {
							t.Fatalf("%dx%d: %q", width, height, line)
						}
					}
				}
			}
		}
	}
}

func TestAStripShowsEveryCount(t *testing.T) {
	for counts, want := range map[[5]int64]string{
		{}:                "·····",
		{0, 1, 0, 0, 0}:   "·█···",
		{1, 1000, 500}:    "▁█▅··",
		{7, 7, 7, 7, 7}:   "█████",
		{1, 2, 3, 4, 5}:   "▂▄▅▇█",
		{0, 0, 0, 0, 1e9}: "····█",
	} {
		if got := strings.ReplaceAll(strip(counts[:]), ".", "·"); got != want {
			t.Errorf("strip(%v) = %s, want %s", counts, got, want)
		}
	}
}

func TestKeysChangeTheLook(t *testing.T) {
	s := screen{v: exampleView()}
	for _, step := range []struct {
		typed string
		want  look
		quit  bool
	}{
		{"p", look{paused: true}, false}, {"p", look{}, false}, {"s", look{order: 1}, false}, {"\x1b[B", look{order: 1, skip: 1}, false},
		{"j", look{order: 1, skip: 2}, false}, {"\x1b[A", look{order: 1, skip: 1}, false}, {"k", look{order: 1}, false}, {"k", look{order: 1}, false},
		{"j", look{order: 1, skip: 1}, false}, {"s", look{order: 2}, false}, {"x", look{order: 2}, false}, {"\x1b[15;2~", look{order: 2}, false}, {"q", look{order: 2}, true},
	} {
		if quit := s.key(step.typed); quit != step.quit || s.look != step.want {
			t.Errorf("%q: %+v, quit %v, want %+v, %v", step.typed, s.look, quit, step.want, step.quit)
		}
	}
	for range 100 {
		s.key("j")
	}
	if s.look.skip != len(s.v.queues)-1 {
		t.Errorf("scrolled past the last queue: %d", s.look.skip)
	}
}

// Reading takes a tenth of the time at most.
func TestASlowViewIsReadLessOften(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 500 * time.Millisecond, 50 * time.Millisecond: 500 * time.Millisecond, time.Second: 9 * time.Second} {
		if got := pauseAfter(took, 500*time.Millisecond); got != want {
			t.Errorf("after %v it waits %v, want %v", took, got, want)
		}
	}
}
