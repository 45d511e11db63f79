package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestCallsOfWorkersRefuseBadInput(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	fetch := func(name, worker string, ask claim.Ask, field, advice string) badInput {
		return badInput{"fetch: " + name, func(s *scene) error { _, err := claim.Of(s.q).Fetch(t.Context(), 0, worker, ask); return err },
			refusal.ErrInvalid, field, advice}
	}
	beat := func(name string, lease time.Duration) badInput {
		return badInput{"heartbeat: " + name, func(s *scene) error {
			_, err := claim.Of(s.q).Heartbeat(t.Context(), 0, "w1", lease, 0, nil)
			return err
		},
			refusal.ErrInvalid, "lease", "must be at least 1ms, or 0 for goodbye"}
	}
	good := claim.Ask{N: 1, Seq: 1, Lease: time.Second}
	var rows []badInput
	for _, worker := range []string{"", "w 1", "w\n1", "w\x7f", "wörk", ".w", strings.Repeat("w", 641)} {
		for call, do := range map[string]func(*scene) error{
			"fetch": func(s *scene) error { _, err := claim.Of(s.q).Fetch(t.Context(), 0, worker, good); return err },
			"settle": func(s *scene) error {
				_, err := claim.Of(s.q).Settle(t.Context(), 0, worker, "call", nil, claim.Ask{})
				return err
			},
			"heartbeat": func(s *scene) error {
				_, err := claim.Of(s.q).Heartbeat(t.Context(), 0, worker, time.Second, 0, nil)
				return err
			},
			"describe": func(s *scene) error { return claim.Of(s.q).Describe(t.Context(), 0, worker, queue.WorkerRunning, "") },
			"stop":     func(s *scene) error { return s.q.StopWorker(t.Context(), worker) },
		} {
			rows = append(rows, badInput{fmt.Sprintf("%s: the worker %.9q", call, worker), do, refusal.ErrInvalid, "worker", "must be one word of up to 640 bytes"})
		}
	}
	refused(t, append(rows, []badInput{
		fetch("-1 tasks", "w1", claim.Ask{N: -1, Seq: 1, Lease: time.Second}, "n", "must not be negative"),
		fetch("a negative seq", "w1", claim.Ask{N: 1, Seq: -1, Lease: time.Second}, "seq", "must be 0 to 2^53: count the requests"),
		fetch("a seq beyond 2^53", "w1", claim.Ask{N: 1, Seq: 1<<53 + 1, Lease: time.Second}, "seq", "must be 0 to 2^53"),
		fetch("no lease", "w1", claim.Ask{N: 1, Seq: 1}, "lease", "must be at least 1ms"),
		beat("a negative lease", -time.Second),
		beat("a lease below 1 ms", time.Microsecond),
		{"settle: 501 outcomes", func(s *scene) error {
			_, err := claim.Of(s.q).Settle(t.Context(), 0, "w1", "call", make([]queue.Outcome, 501), claim.Ask{})
			return err
		}, refusal.ErrInvalid, "outcomes", "are 501, the limit of a call is 500: make several calls"},
		{"settle: a bad request for tasks", func(s *scene) error {
			outcomes := []queue.Outcome{{ID: s.claim.ID, Epoch: s.claim.Epoch, Verb: queue.Complete}}
			_, err := claim.Of(s.q).Settle(t.Context(), 0, "w1", "call", outcomes, claim.Ask{N: 1})
			return err
		}, refusal.ErrInvalid, "lease", "must be at least 1ms"},
		{"settle: a retry verdict of 1,025 bytes", func(s *scene) error {
			return s.settle(queue.Outcome{Verb: queue.Fail, Retry: strings.Repeat("x", 1025)})
		}, refusal.ErrInvalid, "retry", "has 1025 bytes, the limit is 1024"},
		{"describe: a worker without a lease", func(s *scene) error {
			return claim.Of(s.q).Describe(t.Context(), 0, "w9", queue.WorkerRunning, "")
		}, refusal.ErrNotFound, "w9", "no worker with this id has a lease"},
		{"describe: 4,097 bytes", func(s *scene) error {
			return claim.Of(s.q).Describe(t.Context(), 0, "w1", queue.WorkerRunning, strings.Repeat("x", 4097))
		}, refusal.ErrInvalid, "about", "4096"},
		{"stop: a worker without a lease", func(s *scene) error { return s.q.StopWorker(t.Context(), "w9") }, refusal.ErrNotFound, "w9", "no worker with this id has a lease"},
	}...))
}

func TestCallsOfAgentsRefuseBadInput(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	longer := []byte(strings.Repeat("x", 1001))
	suspend := func(name string, change func(*scene, *claim.Suspension), want error, field, advice string) badInput {
		return badInput{"suspend: " + name, func(s *scene) error {
			p := claim.Suspension{Agent: s.claim.ID, Epoch: s.claim.Epoch, Worker: "w1", Wait: claim.Wait{Entry: 1, Digest: "d"},
				Children: []queue.Task{{Kind: "k", ID: s.running + ".new"}}}
			change(s, &p)
			_, err := claim.Of(s.q).Suspend(t.Context(), p)
			return err
		}, want, field, advice}
	}
	remember := func(name string, n claim.Note, field, advice string) badInput {
		return badInput{"remember: " + name, func(s *scene) error {
			return claim.Of(s.q).Remember(t.Context(), s.claim.ID, s.claim.Epoch, "w1", n)
		}, refusal.ErrInvalid, field, advice}
	}
	rows := []badInput{
		suspend("501 children", func(s *scene, p *claim.Suspension) {
			p.Children = nil
			for i := range 501 {
				p.Children = append(p.Children, queue.Task{Kind: "k", ID: fmt.Sprint(s.running, ".", i)})
			}
		}, refusal.ErrInvalid, "children", "are 501, the limit of a call is 500: enqueue the others first"),
		suspend("an invalid child", func(s *scene, p *claim.Suspension) { p.Children[0].Kind = "two words" },
			refusal.ErrInvalid, "kind", ".new: kind"),
		suspend("a child with other content", func(s *scene, p *claim.Suspension) {
			p.Children[0] = queue.Task{Kind: "other", ID: s.running + ".child"}
		},
			refusal.ErrConflict, "child", ".child: idempotency key, name or id belongs"),
		suspend("an unknown member", func(s *scene, p *claim.Suspension) { p.Wait.Members = []claim.Member{{ID: s.running + ".none"}} },
			refusal.ErrNotFound, "member", ".none: no such task"),
		suspend("a member of another agent", func(s *scene, p *claim.Suspension) { p.Wait.Members = []claim.Member{{ID: s.promise}} },
			refusal.ErrNotOwner, "owned", "Task not owned by agent"),
		suspend("another epoch", func(s *scene, p *claim.Suspension) { p.Epoch-- }, refusal.ErrNotHeld, "agent", "it is RUNNING"),
		suspend("another worker", func(s *scene, p *claim.Suspension) { p.Worker = "w2" }, refusal.ErrNotHeld, "agent", "it is RUNNING"),
		suspend("an unknown agent", func(s *scene, p *claim.Suspension) { p.Agent, p.Children = s.gone, nil }, refusal.ErrNotFound, "gone", "no such task"),
		remember("a checkpoint of 1,001 bytes", claim.Note{Checkpoint: &queue.Checkpoint{State: longer}}, "checkpoint", "has 1001 bytes, the limit is 1000"),
		remember("an entry of 2,025 bytes", claim.Note{Entries: []claim.Entry{{Number: 1, Text: []byte(strings.Repeat("x", 2025))}}},
			"entry", "has 2025 bytes, the limit is 1000"),
	}
	for problem, name := range map[string]string{"no name": "", "a dot": "a.b", "two words": "a b", "129 bytes": strings.Repeat("s", 129)} {
		rows = append(rows, badInput{"signal: " + problem, func(s *scene) error { _, err := s.q.Signal(t.Context(), s.running, name, nil); return err },
			refusal.ErrInvalid, "signal", "must be 1 to 128 of A-Z a-z 0-9 _ -"})
	}
	refused(t, append(rows,
		badInput{"signal: a name of NextSignal", func(s *scene) error { _, err := s.q.Signal(t.Context(), s.running, "go__2", nil); return err },
			refusal.ErrInvalid, "signal", "must not end with __ and a number"},
		badInput{"signal: a payload of 1,001 bytes", func(s *scene) error { _, err := s.q.Signal(t.Context(), s.running, "go", longer); return err },
			refusal.ErrInvalid, "payload", "has 1001 bytes, the limit is 1000"},
		badInput{"signal: a promise", func(s *scene) error { _, err := s.q.Signal(t.Context(), s.promise, "go", nil); return err },
			refusal.ErrInvalid, "agent", "is a promise: a signal is for an agent, which waits for it by name; resolve ends a promise"},
		badInput{"signal: a timer", func(s *scene) error { _, err := s.q.Signal(t.Context(), s.timer, "go", nil); return err },
			refusal.ErrInvalid, "agent", "is a timer: a signal is for an agent"},
		badInput{"signal: an agent that has ended", func(s *scene) error { _, err := s.q.Signal(t.Context(), s.done, "go", nil); return err },
			refusal.ErrOwnerEnded, "owner", "has ended"},
		badInput{"signal: an unknown agent", func(s *scene) error { _, err := s.q.Signal(t.Context(), s.gone, "go", nil); return err },
			refusal.ErrNotFound, "gone", "no such task"}))
}
