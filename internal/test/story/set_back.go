package story

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/lua"
)

// SetBack plays stories again, each several times: the clock of Redis is set back by three seconds before one of the
// commands, for which plays returns true. The answers differ then. But no task runs again after its end, nothing ends twice, no
// task is made that was not made before, and the audit finds nothing that it does not find without that.
func SetBack(t *testing.T, rdb redis.UniversalClient, prefix, folder string, plays func(name string) bool) (played int) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in %s (%v)", folder, err)
	}
	library := testclock.Library(t, rdb)
	for i, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "\nredis ") {
			continue // it damages records, which the audit finds
		}
		var before *lives
		for point, text := range setBack(string(content)) {
			if !plays(fmt.Sprint(name, " ", point)) {
				continue
			}
			if before == nil {
				before = live(t, rdb, library, fmt.Sprint(prefix, i), string(content))
			}
			played++
			l := live(t, rdb, library, fmt.Sprint(prefix, i, "-", point), text)
			for id, n := range l.made {
				if n > max(before.made[id], 1) {
					t.Errorf("%s, set back before command %d: %s is made %d times, and %d times otherwise", name, point, id, n, before.made[id])
				}
			}
			for _, fault := range l.faults {
				if !slices.Contains(before.faults, fault) {
					t.Errorf("%s, set back before command %d: %s", name, point, fault)
				}
			}
		}
	}
	return played
}

// setBack returns the texts of a story in which the clock is set back before each of the commands.
func setBack(story string) (texts []string) {
	lines := strings.Split(story, "\n")
	answers := false
	for i, line := range lines {
		switch {
		case line == "":
			answers = false
		case line == "----":
			answers = true
		case !answers && !strings.HasPrefix(line, "#") && strings.TrimLeft(line, " ") == line:
			texts = append(texts, strings.Join(slices.Insert(slices.Clone(lines), i, "advance -3s"), "\n"))
		}
	}
	return texts
}

// instants matches the times in a fault, which differ after a step back.
var instants = regexp.MustCompile(`\b\d{13}\b`)

// lives counts how often each task of a story was made, and lists the faults that its events and the audit show.
type lives struct {
	made   map[string]int
	faults []string
}

func live(t *testing.T, rdb redis.UniversalClient, library *lua.Library, namespace, text string) *lives {
	_, s := play(t, rdb, library, namespace, "all", text)
	l := &lives{made: map[string]int{}}
	batch, err := events.Read(s.ctx, s.q, events.Oldest, 10_000, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended := map[string]bool{}
	for _, e := range batch.Events {
		switch e.Kind {
		case "task_enqueued":
			l.made[e.TaskID]++
			ended[e.TaskID] = false
		case "task_started", "task_retried", "task_completed", "task_failed", "task_cancelled", "task_timed_out":
			if ended[e.TaskID] {
				l.faults = append(l.faults, fmt.Sprintf("%s of %s, which has ended", e.Kind, e.TaskID))
			}
			ended[e.TaskID] = e.Kind != "task_started" && e.Kind != "task_retried"
		}
	}
	snapshot, err := audit.Read(s.ctx, s.q, 0)
	if err != nil {
		t.Fatalf("%s: %v\n%s", namespace, err, text)
	}
	for _, f := range snapshot.Check(0) {
		l.faults = append(l.faults, instants.ReplaceAllString(fmt.Sprint(f), "…"))
	}
	return l
}
