package versions

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// written is the time on the clock at which each fixture was written.
var written = testclock.Start.Add(4 * time.Minute)

// ends are how the tasks of a fixture end, with their result or error.
var ends = map[string]string{
	"0-DONE":                 "COMPLETED " + strings.Repeat("long ", 60),
	"0-n-dead":               "FAILED smtp: 421",
	"0-n-late":               "FAILED Task exceeded deadline",
	"0-n-cancelled":          "CANCELLED no need",
	"0-n-slow-1":             "COMPLETED ",
	"0-PENDING":              "COMPLETED \x00\xff\"q\"\n",
	"0-n-patient":            "COMPLETED " + strings.Repeat("long ", 60),
	"0-n-delayed":            "COMPLETED ",
	"0-KEYED":                "COMPLETED ",
	"0-n-letter":             "COMPLETED ",
	"0-n-held":               "COMPLETED ",
	"0-n-second-few":         "COMPLETED ",
	"0-n-slow-2":             "COMPLETED ",
	"0-n-running":            "COMPLETED ",
	"0-n-running-few":        "COMPLETED ",
	"0-n-retried":            "COMPLETED ",
	"0-n-stopping":           "CANCELLED stop",
	"0-n-promise":            `COMPLETED "kept"`,
	"0-n-timer":              "COMPLETED ",
	"0-n-gather":             `COMPLETED "nxyz"`,
	"0-n-gather.1":           `COMPLETED "x"`,
	"0-n-gather.2":           `COMPLETED "y"`,
	"0-n-gather.3":           `COMPLETED "z"`,
	"0-n-nap":                `COMPLETED "rested"`,
	"0-n-nap.1":              "COMPLETED ",
	"0-n-inbox":              `COMPLETED "onetwo"`,
	"0-n-inbox.s-message":    `COMPLETED "one"`,
	"0-n-inbox.s-message__2": `COMPLETED "two"`,
	"0-n-approval":           `COMPLETED "yes"`,
	"0-n-approval.approved":  `COMPLETED "yes"`,
	"0-n-late!timeout":       "COMPLETED *",
	"0-n-delayed!success":    "COMPLETED *",
}

// fixtures runs a test for each fixture, on a real and on the embedded server.
func fixtures(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	files, err := filepath.Glob("testdata/v*.redis")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".redis"), func(t *testing.T) {
			redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
				load(t, rdb, file)
				test(t, rdb)
			})
		})
	}
}

// Each task of a namespace that an earlier version has written ends once, as it would have then.
func TestANamespaceOfAnEarlierVersionIsWorkedWith(t *testing.T) {
	fixtures(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStage(t, rdb, nil, written)
		s.sound()
		s.settings()
		s.known(queue.Task{Kind: "nap", Name: "nap", Payload: []byte(`""`)}, "0-n-nap")
		s.known(queue.Task{Kind: "echo", IdempotencyKey: "pending-1", Payload: []byte("\x00\xff\"q\"\n")}, "0-PENDING")
		s.known(queue.Task{Kind: "echo", IdempotencyKey: "window", IdempotencyScope: queue.ForWindow, IdempotencyWindow: time.Hour}, "0-KEYED")
		s.known(queue.Task{Kind: "echo", IdempotencyKey: "done-1", Payload: []byte("p")}, "0-DONE")
		s.drain()
	})
}

// settings checks the controls of queues and the defaults of kinds.
func (s *stage) settings() {
	s.Helper()
	stats, err := s.q.Stats(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	seen := 0
	for _, of := range stats.Queues {
		if of.Paused || of.MaxRunning > 0 || of.Rate.N > 0 {
			seen++
		}
		if of.Queue == "paused" != of.Paused || of.Queue == "few" != (of.MaxRunning == 1) || of.Queue == "slow" != (of.Rate == queue.Rate{N: 1, Per: time.Minute, Burst: 1}) {
			s.Errorf("queue %+v", of)
		}
	}
	if seen != 3 {
		s.Errorf("%d queues have controls, want 3: %+v", seen, stats.Queues)
	}
	kinds, err := s.q.Kinds(s.Context())
	if err != nil || kinds["mail"]["timeout_ms"] != "86400000" || kinds["mail"]["max_retries"] != "2" {
		s.Errorf("kinds %v, %v", kinds, err)
	}
}

// known checks that a task is found by its name or key, and not made anew.
func (s *stage) known(task queue.Task, id string) {
	s.Helper()
	if r, err := s.q.Enqueue(s.Context(), task); err != nil || r.New || r.ID != id {
		s.Errorf("Enqueue of a known task = %+v, %v, want %s", r, err, id)
	}
}

// drain runs the namespace until all has ended, and checks how.
func (s *stage) drain() {
	s.Helper()
	ctx := s.Context()
	s.control(s.q.Resume(ctx, "paused"))
	for id, value := range map[string]string{"0-n-promise": `"kept"`, "0-n-approval.approved": `"yes"`} {
		if _, err := s.q.Resolve(ctx, id, []byte(value)); err != nil {
			s.Fatal(err)
		}
	}
	if _, err := s.q.Signal(ctx, "0-n-inbox", "message", []byte(`"two"`)); err != nil {
		s.Fatal(err)
	}
	was := map[string]string{}
	for _, step := range []time.Duration{0, time.Minute, time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute} {
		s.advance(step)
		s.run(s.worker(), all...)
		s.sweep()
		s.note(was)
	}
	for id, want := range ends {
		if start, any := strings.CutSuffix(want, "*"); was[id] != want && !(any && strings.HasPrefix(was[id], start)) {
			s.Errorf("%s is %q, want %q", id, was[id], want)
		}
	}
	s.endedOnce()
	s.sound()
}

// note keeps how tasks have ended, since a record goes when its retention is over.
func (s *stage) note(was map[string]string) {
	s.Helper()
	for id := range ends {
		r, err := s.q.Get(s.Context(), id)
		if err != nil && !errors.Is(err, refusal.ErrNotFound) {
			s.Fatal(err)
		}
		if err == nil && (r.Status.Ended() || was[id] == "") {
			was[id] = string(r.Status) + " " + string(r.Result) + r.Error
		}
	}
}

// endedOnce checks that the events have one end of each task.
func (s *stage) endedOnce() {
	s.Helper()
	entries, err := s.rdb.XRange(s.Context(), s.q.EventsKey(0), "-", "+").Result()
	if err != nil {
		s.Fatal(err)
	}
	count := map[string]int{}
	for _, entry := range entries {
		for _, event := range harness.ReadEvents(entry) {
			if event.Terminal() {
				count[event.ID]++
			}
		}
	}
	for id := range ends {
		if count[id] != 1 {
			s.Errorf("%s has %d ends in the events, want 1", id, count[id])
		}
	}
	if len(count) != len(ends) {
		s.Errorf("%d tasks have ended, want %d", len(count), len(ends))
	}
}

// next returns the library of a program that works with this version of records and with the next one.
func next(t *testing.T, rdb redis.UniversalClient) *lua.Library {
	t.Helper()
	return testclock.LibraryWith(t, rdb, map[string]string{"store/versions": "local versions = {oldest = 2, newest = 3}\n"})
}

// Programs of two releases share a namespace until it is upgraded. From then on the older one is refused, before it has
// changed anything, and the newer one ends all that there is.
func TestProgramsOfTwoReleasesShareANamespaceUntilItIsUpgraded(t *testing.T) {
	fixtures(t, func(t *testing.T, rdb redis.UniversalClient) {
		old, newer := newStage(t, rdb, nil, written), newStage(t, rdb, next(t, rdb), written)
		old.run(old.worker(), "mail")
		newer.run(newer.worker(), "later")
		old.run(old.worker(), "default")
		old.sound()
		if err := rdb.HSet(t.Context(), root, "version", "3").Err(); err != nil {
			t.Fatal(err)
		}
		before := redistest.Dump(t, rdb, "")
		if _, err := old.worker().RunOne(t.Context(), all...); !errors.Is(err, refusal.ErrNewer) {
			t.Errorf("RunOne of the older program = %v, want ErrNewer", err)
		}
		if _, err := old.q.Enqueue(t.Context(), queue.Task{Kind: "echo"}); !errors.Is(err, refusal.ErrNewer) {
			t.Errorf("Enqueue of the older program = %v, want ErrNewer", err)
		}
		if after := redistest.Dump(t, rdb, ""); after != before {
			t.Errorf("the older program has changed something:\n%s", redistest.Diff(before, after))
		}
		newer.drain()
	})
}

// A program that does not work with the version of a namespace any more says so, and changes nothing.
func TestAnOlderNamespaceIsRefused(t *testing.T) {
	fixtures(t, func(t *testing.T, rdb redis.UniversalClient) {
		library := testclock.LibraryWith(t, rdb, map[string]string{"store/versions": "local versions = {oldest = 3, newest = 4}\n"})
		before := redistest.Dump(t, rdb, "")
		_, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: namespace, Library: library})
		if !errors.Is(err, refusal.ErrOlder) || !strings.Contains(err.Error(), "its records have version 2, and this program works with versions 3 to 4") {
			t.Errorf("Open = %v, want ErrOlder", err)
		}
		if after := redistest.Dump(t, rdb, ""); after != before {
			t.Errorf("it has changed something:\n%s", redistest.Diff(before, after))
		}
	})
}
