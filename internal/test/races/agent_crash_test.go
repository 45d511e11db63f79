package races

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// The process of a waiting agent, which has the only reaper, is killed. The server has the limit of
// the wait: another process later ends the wait, with the instant of the limit, and runs the agent
// there.
func TestTheLimitOfAWaitSurvivesACrash(t *testing.T) {
	redistest.NoRace(t, "it kills processes")
	t.Parallel()
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{})
	waiter := s.Spawn("limited")
	id := s.Enqueue(queue.Task{Kind: "limited"})[0]
	status := func() queue.Status { return s.Records(s.Q, []string{id})[id].Status }
	await.Until(t, "the agent waits", func() bool { return status() == queue.Waiting })
	waiter.Kill()
	open := s.Records(s.Q, []string{id + ".open"})[id+".open"]
	until(open.CreatedAt.Add(2 * time.Second)) // no process runs when the limit passes
	if got := status(); got != queue.Waiting {
		t.Fatalf("without a process the agent is %s, want WAITING", got)
	}
	s.Spawn("limited")
	await.Until(t, "the agent has ended", func() bool { return status().Ended() })
	if r := s.Records(s.Q, []string{id})[id]; r.Status != queue.Completed || !strings.Contains(string(r.Result), "Timeout: the wait took longer than its limit") {
		t.Errorf("the agent is %s with %s %s, want COMPLETED with the timeout of its wait", r.Status, r.Result, r.Error)
	}
	// The limit is that of the process that was killed: 1.5 s from the call that made the wait and its member.
	var limits []string
	for _, e := range s.Events(s.Q) {
		if e.Kind == "wait_timed_out" && e.ID == id {
			limits = append(limits, e.Word("timeout_duration_ms")+" "+e.Word("wait_deadline_at"))
		}
	}
	if want := []string{fmt.Sprint("1500 ", open.CreatedAt.Add(1500*time.Millisecond).UnixMilli())}; !slices.Equal(limits, want) {
		t.Errorf("the limits of waits that were told are %q, want %q", limits, want)
	}
	if r := s.Records(s.Q, []string{open.ID})[open.ID]; r.Status != queue.Cancelled || r.Reason != queue.ReasonWaitTimeout {
		t.Errorf("the member is %s for %q, want CANCELLED for the limit of the wait", r.Status, r.Reason)
	}
}
