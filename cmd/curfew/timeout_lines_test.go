package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// Whoever ends a late task says so, also a command that does one thing. It says it once, on stderr, and nothing else without --verbose.
func TestACommandThatEndsALateTaskSaysSo(t *testing.T) {
	server := redistest.Embedded(t)
	q := queuetest.Open(t, server.Client(), queue.Config{Namespace: "curfew"})
	w := &queuetest.Taker{Q: q, Worker: "w"}
	late := func(line string) (agent, child string) {
		t.Helper()
		agent = queuetest.Enqueue(t, q, queue.Task{Kind: "agent", Queue: line}).ID
		child = agent + ".c"
		epoch := w.Take(t, agent, line).Epoch
		if _, err := claim.Of(q).Suspend(t.Context(), claim.Suspension{Agent: agent, Epoch: epoch, Worker: "w", Children: []queue.Task{{ID: child, Kind: "step", Timeout: time.Millisecond}},
			Wait: claim.Wait{Entry: 1, Digest: "d", Mode: queue.WaitAny, Members: []claim.Member{{ID: child}}}}); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the task is late", func() bool {
			due, err := inspect.Deadlines(t.Context(), q, time.Minute, 1)
			return err == nil && due.Overdue == 1
		})
		return agent, child
	}
	for i, row := range []struct{ flags, first, second string }{
		{"", `level=INFO msg="Task timed out" task_id=`, `level=INFO msg="Resuming agent after task timeout" agent_id=`},
		{"--log-format json", `"level":"INFO","msg":"Task timed out","task_id":"`, `"level":"INFO","msg":"Resuming agent after task timeout","agent_id":"`},
		{"--quiet", "", ""},
	} {
		agent, child := late(fmt.Sprint("line", i))
		args := append([]string{"cancel", child, "--redis", "redis://" + server.Addr()}, strings.Fields(row.flags)...)
		_, out, errs := curfew(t, args...)
		if strings.Contains(out, "Task timed out") {
			t.Errorf("curfew %q: stdout has the line: %s", args, out)
		}
		lines := strings.Split(strings.TrimSpace(errs), "\n")
		if row.first == "" {
			if strings.Contains(errs, "Task timed out") {
				t.Errorf("curfew %q: %s, want no line", args, errs)
			}
			continue
		}
		if len(lines) < 2 || !strings.Contains(lines[0], row.first+child) || !strings.Contains(lines[1], row.second+agent) || strings.Count(errs, "INFO") != 2 || strings.Contains(errs, "WARN") {
			t.Errorf("curfew %q: %s, want the two lines about %s and %s", args, errs, child, agent)
		}
		if _, _, errs = curfew(t, args...); strings.Contains(errs, "INFO") {
			t.Errorf("curfew %q again: %s, want no line", args, errs)
		}
	}
}

// An operator sees the timeouts of the programs that run until they are interrupted without --verbose.
func TestProgramsLogTimeoutsByDefault(t *testing.T) {
	rdb, url := database(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	errs, _ := startReap(t, "--namespace shop --redis "+url)
	errs.await(t, "The reaper runs")
	id := queuetest.Enqueue(t, q, queue.Task{Timeout: time.Millisecond}).ID
	errs.await(t, `level=INFO msg="Task timed out" task_id=`+id)
}
