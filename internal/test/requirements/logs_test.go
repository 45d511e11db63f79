package requirements

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// buffer is the output of a logger.
type buffer struct{ harness.Logs }

// lines returns the lines so far that contain a text.
func (b *buffer) lines(text string) (found []string) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, text) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// timeless leaves out the time of a line.
func timeless(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// agentsOf enqueues n agents, and suspends each until a child has ended.
func (s *stage) agentsOf(n int, child queue.Task) (agents []string) {
	s.Helper()
	s.enqueueAll(n, func(int) queue.Task { return queue.Task{Kind: "agent", Queue: "agents"} })
	s.seq++
	trip, err := claim.Of(s.q).Fetch(s.Context(), 0, "w", claim.Ask{N: n, Seq: s.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "agents", N: n}}})
	if err != nil || len(trip.Claims) != n {
		s.Fatalf("fetch gave %d agents, %v", len(trip.Claims), err)
	}
	for _, c := range trip.Claims {
		child.ID = c.ID + ".1"
		if _, err = claim.Of(s.q).Suspend(s.Context(), claim.Suspension{Agent: c.ID, Epoch: c.Epoch, Worker: "w",
			Wait: claim.Wait{Entry: 1, Digest: "d", Members: []claim.Member{{ID: child.ID}}}, Children: []queue.Task{child}}); err != nil {
			s.Fatal(err)
		}
		agents = append(agents, c.ID)
	}
	return agents
}

// logLines compares the lines of a timeout and of the agent that it resumes, word for word.
func logLines(t *testing.T) {
	rdb, logs := redistest.Shared(t).Client(t), &buffer{}
	logger := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{ReplaceAttr: timeless}))
	s := open(t, rdb, queue.Config{Library: testclock.Library(t, rdb), Logger: logger}, testclock.Start)
	deadline := time.Date(2026, 2, 12, 10, 30, 0, 0, time.UTC)
	s.now = deadline.Add(-time.Second)
	s.advance(0)
	root := s.enqueue(queue.Task{Kind: "embed", Timeout: time.Second})
	agent := s.agentsOf(1, queue.Task{Kind: "render", Queue: "slow", Timeout: 1100 * time.Millisecond})[0]
	s.advance(time.Second + time.Millisecond)
	s.sweep()
	s.advance(time.Second)
	s.sweep()
	s.sweep()
	got := strings.Join(append(logs.lines("timed out"), logs.lines("after task timeout")...), "\n")
	want := `level=INFO msg="Task timed out" task_id=` + root + ` deadline=2026-02-12T10:30:00Z queue=default kind=embed timeout_type=execution lag_ms=1
level=INFO msg="Task timed out" task_id=` + agent + `.1 deadline=2026-02-12T10:30:00.1Z queue=slow kind=render agent_id=` + agent + ` run_id=` + agent + ` timeout_type=execution lag_ms=901
level=INFO msg="Resuming agent after task timeout" agent_id=` + agent + ` task_id=` + agent + `.1 queue=agents kind=agent run_id=` + agent
	if got != want {
		t.Errorf("the log is\n%s\nwant\n%s", got, want)
	}
}

// eightReapersLog ends 1000 tasks with eight reapers. Agents wait for 300 of them.
func eightReapersLog(t *testing.T) {
	const n, agents = 1000, 300
	logs := &buffer{}
	logger := slog.New(slog.NewJSONHandler(logs, nil))
	s := open(t, redistest.Shared(t).Client(t), queue.Config{Logger: logger}, time.Time{})
	for range 8 {
		// Small batches and a short fall-back, so that the reapers collide.
		s.reap(reaper.Config{Batch: 10, Fallback: 5 * time.Millisecond, Logger: logger})
	}
	resumed := map[string]bool{}
	for _, agent := range s.agentsOf(agents, queue.Task{Kind: "k", Timeout: 300 * time.Millisecond}) {
		resumed[agent] = true
	}
	s.enqueueAll(n-agents, func(i int) queue.Task {
		return queue.Task{Kind: "k", Timeout: 300*time.Millisecond + time.Duration(i%100)*time.Millisecond}
	})
	await.Until(t, "all are logged", func() bool { return len(logs.lines("Task timed out")) >= n })
	last := s.enqueue(queue.Task{Kind: "k", Timeout: time.Millisecond}) // it is logged after all others
	await.Until(t, "one more is logged", func() bool { return len(logs.lines(last)) > 0 })
	seen := map[string]bool{}
	for _, text := range logs.lines("") {
		var line struct {
			Msg             string
			Task            string `json:"task_id"`
			Agent           string `json:"agent_id"`
			Deadline, Level string
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		switch line.Msg {
		case "Task timed out":
			if seen[line.Task] {
				t.Errorf("%s is logged twice", line.Task)
			}
			seen[line.Task] = true
		case "Resuming agent after task timeout":
			if !seen[line.Task] || !resumed[line.Agent] {
				t.Errorf("before the timeout of %s, or twice: %s", line.Task, text)
			}
			delete(resumed, line.Agent)
		case "Redis may lose tasks": // of the server of the tests
		default:
			t.Errorf("an unexpected line: %s", text)
		}
	}
	if len(seen) != n+1 || len(resumed) != 0 {
		t.Errorf("%d timeouts are logged, want %d; %d agents have no line", len(seen), n+1, len(resumed))
	}
}
