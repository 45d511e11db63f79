package misuse

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// calls returns calls that write and calls that only read, by name.
func calls(q *queue.Queue, id string) (writes, reads map[string]func(context.Context) error) {
	attempts := claim.Of(q)
	ask := claim.Ask{N: 1, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: 1}}}
	done := []queue.Outcome{{ID: id, Epoch: 1, Verb: queue.Complete}}
	last := func(_ any, err error) error { return err }
	writes = map[string]func(context.Context) error{
		"Enqueue":    func(ctx context.Context) error { return last(q.Enqueue(ctx, queue.Task{Kind: "k"})) },
		"EnqueueAll": func(ctx context.Context) error { return last(q.EnqueueAll(ctx, []queue.Task{{Kind: "k"}})) },
		"Cancel":     func(ctx context.Context) error { return last(q.Cancel(ctx, id, "")) },
		"CancelAll":  func(ctx context.Context) error { return last(q.CancelAll(ctx, []string{id}, "")) },
		"Delete":     func(ctx context.Context) error { return last(q.Delete(ctx, id)) },
		"DeleteAll":  func(ctx context.Context) error { return last(q.DeleteAll(ctx, []string{id})) },
		"Resolve":    func(ctx context.Context) error { return last(q.Resolve(ctx, id, nil)) },
		"Signal":     func(ctx context.Context) error { return last(q.Signal(ctx, id, "go", nil)) },
		"SignalAs":   func(ctx context.Context) error { return last(q.SignalAs(ctx, "call", id, "go", nil)) },
		"Configure":  func(ctx context.Context) error { return q.Configure(ctx, queue.Settings{Figures: "on"}) },
		"DefineKind": func(ctx context.Context) error { return q.DefineKind(ctx, "k", queue.Defaults{}) },
		"Pause":      func(ctx context.Context) error { return last(q.Pause(ctx, "default")) },
		"Fetch":      func(ctx context.Context) error { return last(attempts.Fetch(ctx, 0, "w", ask)) },
		"Settle":     func(ctx context.Context) error { return last(attempts.Settle(ctx, 0, "w", "c", done, claim.Ask{})) },
		"Heartbeat":  func(ctx context.Context) error { return last(attempts.Heartbeat(ctx, 0, "w", time.Minute, 0, nil)) },
		"Remember":   func(ctx context.Context) error { return attempts.Remember(ctx, id, 1, "w", claim.Note{}) },
		"Drain":      func(ctx context.Context) error { return last(q.Drain(ctx, "default", "")) },
		"Reject":     func(ctx context.Context) error { return last(q.Reject(ctx, id, "no")) },
		"CancelAs":   func(ctx context.Context) error { return last(q.CancelAs(ctx, "call", "", []string{id}, "")) },
		"StopWorker": func(ctx context.Context) error { return q.StopWorker(ctx, "w") },
		"Describe":   func(ctx context.Context) error { return attempts.Describe(ctx, 0, "w", "running", "{}") },
		"Sweep":      func(ctx context.Context) error { return last(reaper.Sweep(ctx, q, 0, "r", 100, time.Second)) },
	}
	reads = map[string]func(context.Context) error{
		"Get":      func(ctx context.Context) error { return last(q.Get(ctx, id)) },
		"GetAll":   func(ctx context.Context) error { return last(q.GetAll(ctx, []string{id})) },
		"Stats":    func(ctx context.Context) error { return last(q.Stats(ctx)) },
		"Kinds":    func(ctx context.Context) error { return last(q.Kinds(ctx)) },
		"Recall":   func(ctx context.Context) error { return last(attempts.Recall(ctx, id)) },
		"Journal":  func(ctx context.Context) error { return last(attempts.Journal(ctx, id)) },
		"Children": func(ctx context.Context) error { return last(attempts.Children(ctx, id, []string{"c"})) },
		"Answers":  func(ctx context.Context) error { return attempts.Answers(ctx, 0) },
		"Await": func(ctx context.Context) error {
			line := attempts.WakeLine(0, []string{"default"})
			defer line.Close()
			return last(line.Await(ctx, time.Second))
		},
		"Read": func(ctx context.Context) error { return last(events.Read(ctx, q, events.Oldest, 1, 0)) },
		"Read, waiting": func(ctx context.Context) error {
			return last(events.Read(ctx, q, events.Newest, 1, time.Minute))
		},
		"Explain":       func(ctx context.Context) error { return last(inspect.Explain(ctx, q, id)) },
		"Audit":         func(ctx context.Context) error { return last(inspect.Audit(ctx, q)) },
		"List":          func(ctx context.Context) error { return last(inspect.List(ctx, q, inspect.Filter{}, "", 10)) },
		"Export":        func(ctx context.Context) error { return last(inspect.Export(ctx, q, "", 10)) },
		"ExportTo":      func(ctx context.Context) error { return inspect.ExportTo(ctx, q, io.Discard) },
		"Figures":       func(ctx context.Context) error { return last(inspect.Figures(ctx, q)) },
		"Sweeps":        func(ctx context.Context) error { return last(inspect.Sweeps(ctx, q)) },
		"OldestWaiting": func(ctx context.Context) error { return last(inspect.OldestWaiting(ctx, q)) },
		"Workers":       func(ctx context.Context) error { return last(inspect.Workers(ctx, q)) },
		"inspect.Read":  func(ctx context.Context) error { return last(inspect.Read(ctx, q, id)) },
		"Agents":        func(ctx context.Context) error { return last(inspect.Agents(ctx, q, 10)) },
		"Deadlines":     func(ctx context.Context) error { return last(inspect.Deadlines(ctx, q, 0, 10)) },
		"DueTasks": func(ctx context.Context) error {
			_, _, err := inspect.DueTasks(ctx, q, time.Time{}, time.Now(), 10)
			return err
		},
		"Recent": func(ctx context.Context) error { return last(events.Recent(ctx, q, 10)) },
	}
	return writes, reads
}

// If the server fails after Open, each call returns the same kind of error. Errors
// for which retrying is useless are returned after the first try, also by Run of a worker or reaper that begins
// then. Temporary errors end neither Run nor Result.
func TestEachCallSaysWhatIsWrongWithTheServer(t *testing.T) {
	for _, row := range []struct {
		claim, line string
		want        error
	}{
		{"a password is set", "-NOAUTH Authentication required.", refusal.ErrNoAccess},
		{"the password changed", "-WRONGPASS invalid username-password pair or user is disabled.", refusal.ErrNoAccess},
		{"protected mode", "-DENIED Redis is running in protected mode because", refusal.ErrNoAccess},
		{"no right", "-NOPERM this user has no permissions to access one of the keys used as arguments", refusal.ErrNoRight},
		{"a node of a cluster", "-MOVED 1 127.0.0.1:1", refusal.ErrMismatch},
		{"no such database", "-ERR DB index is out of range", refusal.ErrMismatch},
		{"a web server", "HTTP/1.1 400 Bad Request", refusal.ErrMismatch},
		{"neither functions nor scripts", "-ERR unknown command 'fcall', with args beginning with: 'x'", refusal.ErrUnfit},
		{"a closed client", "", refusal.ErrClosed},
		{"a server that loads its data", "-LOADING Redis is loading the dataset in memory", refusal.ErrUnavailable},
		{"a cluster that is down", "-CLUSTERDOWN The cluster is down", refusal.ErrUnavailable},
		{"a replica", "-READONLY You can't write against a read only replica.", refusal.ErrUnavailable},
		{"a replica without its master", "-MASTERDOWN Link with MASTER is down", refusal.ErrUnavailable},
		{"a full disk", "-MISCONF Redis is configured to save RDB snapshots", refusal.ErrUnavailable},
		{"too few replicas", "-NOREPLICAS Not enough good replicas to write.", refusal.ErrUnavailable},
		{"a script without end", "-BUSY Redis is busy running a script.", refusal.ErrUnavailable},
		{"too many clients", "-ERR max number of clients reached", refusal.ErrUnavailable},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.Start(t, redistest.Shared(t).Addr)
			rdb := connect(t, "redis://"+proxy.Addr)
			rdb.AddHook(tries{})
			q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: redistest.Namespace(t), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			r, err := q.Enqueue(t.Context(), queue.Task{Kind: "k"})
			if err != nil {
				t.Fatal(err)
			}
			waiting := make(chan error, 1) // a Result that has begun
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			go func() { _, err := q.Result(ctx, r.ID); waiting <- err }()
			if row.want == refusal.ErrClosed {
				rdb.Close()
			} else {
				proxy.Say(row.line)
			}
			var group sync.WaitGroup
			writes, reads := calls(q, r.ID)
			for _, all := range []map[string]func(context.Context) error{writes, reads} {
				for name, call := range all {
					try := func() {
						ctx, commands := counting(t.Context())
						start := time.Now()
						err := call(ctx)
						took := time.Since(start)
						// real time: nothing is checked of a call that took so long
						if writes[name] != nil && took > engine.TryFor && errors.Is(err, refusal.ErrUnknown) && errors.Is(err, row.want) {
							return // on a slow machine its first try was given up, and can have had an effect: then it is repeated for longer
						}
						// real time: nothing is checked of a call that took so long
						if name == "Await" && err == nil && took >= time.Second {
							return // its timeout came before the server had said anything
						}
						if made := commands.Load(); row.want != refusal.ErrUnavailable && made > 8 { // one that is retried for five seconds makes 15 or more
							t.Errorf("%s made %d commands: it was retried", name, made)
						}
						same(t, name, err, row.want)
					}
					if row.want == refusal.ErrUnavailable { // each takes five seconds
						group.Go(try)
					} else {
						try()
					}
				}
			}
			group.Go(func() { endsAfterwards(t, q, r.ID, row.want) })
			group.Wait()
			if err := <-waiting; row.want == refusal.ErrUnavailable && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a Result that had begun = %v, want the error of its context", err)
			} else if row.want != refusal.ErrUnavailable {
				same(t, "a Result that had begun", err, row.want)
			}
		})
	}
}

// same is like is, but does not end the test, so that other goroutines can call it.
func same(t *testing.T, what string, err, want error) {
	t.Helper()
	for _, kind := range kinds {
		if errors.Is(err, kind) != (kind == want) {
			t.Errorf("%s = %v, want %v", what, err, want)
			return
		}
	}
	if text := err.Error(); strings.Count(text, want.Error()) != 1 {
		t.Errorf("%s = %v, which contains %q %d times, want once", what, err, want, strings.Count(text, want.Error()))
	}
}

// endsAfterwards runs Result and both Run methods. A temporary error ends them only with their
// context, any other error at once.
func endsAfterwards(t *testing.T, q *queue.Queue, id string, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	var group sync.WaitGroup
	for name, run := range map[string]func() error{
		"Result":     func() error { _, err := q.Result(ctx, id); return err },
		"reaper.Run": func() error { return reaper.New(q, reaper.Config{}).Run(ctx) },
		"worker.Run": func() error {
			w := worker.New(q, worker.Config{})
			w.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { return nil, nil })
			return w.Run(ctx)
		},
	} {
		group.Go(func() {
			err := run()
			switch {
			case want != refusal.ErrUnavailable:
				same(t, name, err, want)
			case name != "Result" && err != nil:
				t.Errorf("%s = %v, want nil at the end of its context", name, err)
			case name == "Result" && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("Result = %v, want the error of its context", err)
			}
		})
	}
	group.Wait()
}
