package misuse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// rules returns the ACL rules of a role from docs/how-to/security.md, without its user and password.
func rules(t *testing.T, role string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/how-to/security.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```\nACL SETUSER " + role + " on >secret (.*?)\n```").FindSubmatch(text)
	if block == nil {
		t.Fatalf("docs/how-to/security.md has no ACL SETUSER for the role %s", role)
	}
	return strings.Fields(string(block[1]))
}

// user sets the ACL rules of a user to exactly rules, and returns a client of that user.
func user(t *testing.T, admin *redis.Client, name string, rules ...string) *redis.Client {
	t.Helper()
	grant(t, admin, name, append([]string{"reset", "on", ">secret"}, rules...)...)
	rdb := redis.NewClient(&redis.Options{Addr: admin.Options().Addr, Username: name, Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func grant(t *testing.T, admin *redis.Client, name string, rules ...string) {
	t.Helper()
	words := []any{"acl", "setuser", name}
	for _, rule := range rules {
		words = append(words, rule)
	}
	if err := admin.Do(context.Background(), words...).Err(); err != nil {
		t.Fatalf("ACL SETUSER %s %s: %v", name, rules, err)
	}
}

func openAs(rdb redis.UniversalClient, access queue.Access, logger *slog.Logger) (*queue.Queue, error) {
	return queue.Open(context.Background(), rdb, queue.Config{Access: access, Events: queue.EventsAll, Logger: logger})
}

var quiet = slog.New(slog.DiscardHandler)

// roles are the roles of docs/how-to/security.md, each with a function that makes its calls.
var roles = map[string]struct {
	access queue.Access
	does   func(t *testing.T, q, admin *queue.Queue)
}{
	"producer": {queue.AccessProduce, produces},
	"worker":   {queue.AccessWork, works},
	"reaper":   {queue.AccessReap, reaps},
	"reader":   {queue.AccessRead, reads},
}

// must returns a function that returns the result of a call, and fails the test if the call failed.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return v
	}
}

func produces(t *testing.T, q, admin *queue.Queue) {
	ctx := t.Context()
	r := must[queue.Receipt](t)(q.Enqueue(ctx, queue.Task{Kind: "k", Payload: []byte(strings.Repeat("x", 2000)), IdempotencyKey: "key", Timeout: time.Hour}))
	must[[]queue.Receipt](t)(q.EnqueueAll(ctx, []queue.Task{{Kind: "k", Delay: time.Hour}, {Kind: "k", QueueTimeout: time.Millisecond}, {Kind: "k"}}))
	must[*queue.Record](t)(q.Get(ctx, r.ID))
	must[queue.Stats](t)(q.Stats(ctx))
	if err := q.DefineKind(ctx, "k", queue.Defaults{MaxRetries: 2}); err != nil {
		t.Error(err)
	}
	promise := must[queue.Receipt](t)(q.Enqueue(ctx, queue.Task{Kind: "k", Promise: true}))
	must[queue.Resolution](t)(q.Resolve(ctx, promise.ID, []byte("1")))
	time.AfterFunc(100*time.Millisecond, func() { admin.Cancel(ctx, r.ID, "") })
	if _, err := q.Result(ctx, r.ID); !errors.Is(err, refusal.ErrCancelled) {
		t.Errorf("Result = %v, want the task cancelled", err)
	}
	must[queue.Cancellation](t)(q.Cancel(ctx, r.ID, ""))
}

func works(t *testing.T, q, admin *queue.Queue) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := worker.New(q, worker.Config{Beat: 50 * time.Millisecond, Logger: quiet})
	w.Defaults("k", queue.Defaults{MaxRetries: 1, Backoff: queue.Backoff{Delay: time.Millisecond}})
	w.HandleRaw("k", func(ctx context.Context, _ []byte) ([]byte, error) {
		worker.Progress(ctx, "half")
		if worker.Info(ctx).Retries == 0 {
			return nil, errors.New("again")
		}
		return []byte(`"done"`), nil
	})
	w.HandleRaw("hangs", func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ string) (string, error) {
		return agentwait.Await(a, agentwait.Schedule[string](a, nil, queue.Task{Kind: "k"}))
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	agent := must[queue.Receipt](t)(admin.Enqueue(ctx, queue.Task{Kind: "agent"}))
	hangs := must[queue.Receipt](t)(admin.Enqueue(ctx, queue.Task{Kind: "hangs", Timeout: 50 * time.Millisecond}))
	if got, err := admin.Result(ctx, agent.ID); string(got) != `"done"` {
		t.Errorf("Result of the agent = %q, %v, want \"done\"", got, err)
	}
	if _, err := admin.Result(ctx, hangs.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Result of the task that hangs = %v, want DeadlineExceeded", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

func reaps(t *testing.T, q, admin *queue.Queue) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- reaper.New(q, reaper.Config{Logger: quiet}).Run(ctx) }()
	late := must[queue.Receipt](t)(admin.Enqueue(ctx, queue.Task{Kind: "k", Timeout: 50 * time.Millisecond}))
	await.Until(t, "the task is late", func() bool { r, err := admin.Get(ctx, late.ID); return err == nil && r.TimedOut })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

func reads(t *testing.T, q, admin *queue.Queue) {
	ctx := t.Context()
	owner := must[queue.Receipt](t)(admin.Enqueue(ctx, queue.Task{Kind: "k", Payload: []byte(strings.Repeat("x", 2000))}))
	must[queue.Cancellation](t)(admin.Cancel(ctx, must[queue.Receipt](t)(admin.Enqueue(ctx, queue.Task{ID: owner.ID + ".child", Kind: "k"})).ID, ""))
	_, all := calls(q, owner.ID)
	for name, call := range all {
		if name == "Await" || name == "Read, waiting" { // only workers call Await; "Read, waiting" is below
			continue
		}
		if err := call(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	must[queue.Receipt](t)(admin.Enqueue(ctx, queue.Task{Kind: "k", Timeout: time.Hour}))
	must[inspect.DueCounts](t)(inspect.Deadlines(ctx, q, 0, 5))
	if _, _, err := inspect.DueTasks(ctx, q, time.Time{}, time.Now().Add(2*time.Hour), 10); err != nil {
		t.Error(err)
	}
	must[inspect.AgentList](t)(inspect.Agents(ctx, q, 10))
	must[[]events.Event](t)(events.Recent(ctx, q, 10))
	must[events.Batch](t)(events.Read(ctx, q, events.Newest, 10, 50*time.Millisecond))
	if err := inspect.ExportTo(ctx, q, io.Discard); err != nil {
		t.Error(err)
	}
	if _, err := q.Enqueue(ctx, queue.Task{Kind: "k"}); !errors.Is(err, refusal.ErrNoRight) {
		t.Errorf("Enqueue of a reader = %v, want it refused", err)
	}
}

// The rules of docs/how-to/security.md are enough for all calls of a role, with functions and with scripts.
func TestTheRightsOfTheDocumentAreEnough(t *testing.T) {
	for role, r := range roles {
		for _, way := range [][]string{{"+fcall", "+function|load"}, {"+eval", "+evalsha"}} {
			t.Run(role+" "+way[0], func(t *testing.T) {
				t.Parallel()
				admin := redistest.Start(t).Client(t)
				whole, err := openAs(admin, queue.AccessAll, quiet)
				if err != nil {
					t.Fatal(err)
				}
				others := slices.DeleteFunc(rules(t, role), func(rule string) bool {
					return slices.Contains([]string{"+fcall", "+function|load", "+eval", "+evalsha"}, rule)
				})
				q, err := openAs(user(t, admin, role, append(others, way...)...), r.access, quiet)
				if err != nil {
					t.Fatal(err)
				}
				r.does(t, q, whole)
				if found, err := inspect.Audit(t.Context(), whole); err != nil || len(found) > 0 {
					t.Errorf("Audit = %v, %v", found, err)
				}
			})
		}
	}
}

// Without any one rule of a role, the error of Open names the rule that grants the missing right.
func TestEachRightOfTheDocumentIsNeeded(t *testing.T) {
	for role, r := range roles {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			admin := redistest.Start(t).Client(t)
			if _, err := openAs(admin, queue.AccessAll, quiet); err != nil {
				t.Fatal(err)
			}
			all := rules(t, role)
			for i, rule := range all {
				if slices.Contains([]string{"+info", "+function|load", "+eval", "+evalsha", "resetchannels"}, rule) {
					continue // not needed here, or one of two alternatives
				}
				rdb := user(t, admin, role, slices.Delete(slices.Clone(all), i, i+1)...)
				_, err := openAs(rdb, r.access, quiet)
				_, cure, found := strings.Cut(fmt.Sprint(err), "ACL SETUSER "+role+" ")
				if !errors.Is(err, refusal.ErrNoRight) || !found || !strings.HasPrefix(cure, rule) && !strings.HasPrefix(rule, "~") && !strings.HasPrefix(rule, "&") ||
					!strings.HasPrefix(cure, rule[:1]) {
					t.Errorf("without %s: Open = %v", rule, err)
					continue
				}
				cure, _, _ = strings.Cut(cure, " (")
				cure, _, _ = strings.Cut(cure, ", or ")
				grant(t, admin, role, strings.Fields(cure)...)
				if _, err = openAs(rdb, r.access, quiet); err != nil {
					t.Errorf("without %s, and with %s granted: Open = %v", rule, cure, err)
				}
			}
			for _, category := range []string{"@all", "@read", "@write", "@hash", "@string", "@sortedset", "@fast", "@slow", "@scripting", "@stream", "@set", "@list", "@keyspace"} {
				if category == "@write" && role == "reader" {
					continue
				}
				_, err := openAs(user(t, admin, role, append(slices.Clone(all), "-"+category)...), r.access, quiet)
				if !errors.Is(err, refusal.ErrNoRight) || !strings.Contains(fmt.Sprint(err), "ACL SETUSER "+role+" +") {
					t.Errorf("without %s: Open = %v", category, err)
				}
			}
		})
	}
}
