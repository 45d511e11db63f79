package races

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

const (
	diesAtVariable = "CURFEW_RACES_DIES_AT" // the number of a call
	diesVariable   = "CURFEW_RACES_DIES"    // before or after the server has it
)

// playAgents runs agents in a child process. role says which, and how.
func playAgents(ctx context.Context, role string, rdb *redis.Client, q *queue.Queue) {
	config := worker.Config{Concurrency: 20, Lease: time.Second, NoReaper: true}
	ledger := &ledger{rdb: redis.NewClient(rdb.Options()), namespace: q.Namespace()}
	switch role {
	case "traveller": // it runs only the agents, and dies at one of its calls
		config.Concurrency, config.Queues = 1, map[string]int{"agents": 1}
		config.Lease = 5 * time.Second // many of them start at once, and only those that die may lose a lease
		n, _ := strconv.Atoi(os.Getenv(diesAtVariable))
		names, nth := agentScripts(n)
		rdb.AddHook(&fuse{n: nth, before: os.Getenv(diesVariable) == "before", names: names, ledger: ledger})
	case "sleeper":
		config.Lease = time.Minute
		config.Queues = map[string]int{"sleepers": 1}
	case "patient":
		config.Lease = time.Minute
		config.Queues = map[string]int{"agents": 1}
	case "both":
		config.Queues, config.NoReaper = map[string]int{"agents": 1, "leaves": 1}, false
	}
	w := worker.New(q, config)
	if role == "sleeper" {
		w.HandleRaw("sleep", func(ctx context.Context, _ []byte) ([]byte, error) {
			fmt.Println("sleeps")
			select {
			case <-time.After(10 * time.Second):
				return []byte("slept"), nil
			case <-ctx.Done():
				fmt.Println("stopped:", context.Cause(ctx))
				return nil, context.Cause(ctx)
			}
		})
	} else {
		handleAgents(w, ledger)
		handleLeaves(w, ledger)
	}
	if err := w.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
	}
}

// ledger records what handlers did, in keys outside of the namespace under test.
type ledger struct {
	rdb       redis.UniversalClient
	namespace string
	mu        sync.Mutex
	unnoted   bool // a step has had its effect, and no call has recorded it since
}

func (l *ledger) key(of string) string { return l.namespace + "-ledger-" + of }

// note records the effect of a step.
func (l *ledger) note(ctx context.Context, agent, step string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unnoted = true
	return l.rdb.RPush(ctx, l.key(agent), step).Err()
}

func (l *ledger) ran(ctx context.Context) error {
	return l.rdb.HIncrBy(ctx, l.key("runs"), worker.Info(ctx).ID, 1).Err()
}

// handleLeaves registers the handler of the agents' children.
func handleLeaves(w *worker.Worker, l *ledger) {
	worker.Handle(w, "double", func(ctx context.Context, n int) (int, error) { return 2 * n, l.ran(ctx) })
}

// handleAgents registers the agents of these tests.
func handleAgents(w *worker.Worker, l *ledger) {
	agentwait.Handle(w, "traveller", func(a *agentwait.Agent, n int) (int, error) { return travel(a, l, n) })
	agentwait.Handle(w, "signalled", func(a *agentwait.Agent, n int) (int, error) {
		sum, err := travel(a, l, n)
		if err != nil {
			return 0, err
		}
		more, err := agentwait.Await(a, agentwait.Signal[int](a, "more"))
		return sum + more, err
	})
	agentwait.Handle(w, "patient", func(a *agentwait.Agent, _ []byte) (string, error) {
		_, err := agentwait.Run[string](a, nil, queue.Task{Kind: "sleep", Queue: "sleepers", Timeout: 5 * time.Second})
		var late *queue.TaskTimedOutError
		if errors.As(err, &late) {
			return "fallback", nil
		}
		return "", err
	})
}

// travel uses everything that an agent can: steps, children, waits, a sleep and random numbers. It
// returns 2 (0+1+…+(n-1)) + 2.
func travel(a *agentwait.Agent, l *ledger, n int) (int, error) {
	step := func(name string) error {
		_, err := agentwait.Step(a, name, func(ctx context.Context) (int, error) { return 0, l.note(ctx, a.ID(), name) })
		return err
	}
	number := a.Rand().Uint64()
	if err := step("first"); err != nil {
		return 0, err
	}
	var all []*agentwait.Future[int]
	for i := range n {
		all = append(all, agentwait.Schedule[int](a, i, queue.Task{Kind: "double", Queue: "leaves"}))
	}
	values, err := agentwait.JoinAll(a, all...)
	if err != nil {
		return 0, err
	}
	if err := step("second"); err != nil {
		return 0, err
	}
	if err := agentwait.Sleep(a, 5*time.Millisecond); err != nil {
		return 0, err
	}
	// The name of this child is the random number: a replay with another number would diverge.
	last, err := agentwait.Run[int](a, 1, queue.Task{ID: fmt.Sprintf("n%d", number), Kind: "double", Queue: "leaves"})
	if err != nil {
		return 0, err
	}
	if err := step("third"); err != nil {
		return 0, err
	}
	sum := last
	for _, v := range values {
		sum += v
	}
	return sum, nil
}

// travelWork is the largest number of calls of travel, without fetches. travelFetches is that of
// its fetches, some of which return no task.
const travelWork, travelFetches = 15, 6

// agentScripts returns the names, by handle, of the calls that count for the call number n of an
// agent, and its number among them. The first numbers are calls of its handler, the others fetches.
func agentScripts(n int) (names map[string]string, nth int) {
	library, err := lua.Load(lua.Options{Functions: true})
	if err != nil {
		panic(err)
	}
	if n > travelWork {
		return map[string]string{library.Handle("fetch"): "fetch"}, n - travelWork
	}
	names = map[string]string{}
	for _, name := range []string{"suspend", "remember", "recall", "settle"} {
		names[library.Handle(name)] = name
	}
	return names, n
}

// fuse ends this process at one of its calls: before the request is sent, or after the reply.
type fuse struct {
	n      int // 0: never
	before bool
	names  map[string]string
	ledger *ledger

	mu   sync.Mutex
	seen int
	last string // the arguments of the last call: a try of the same call is not another one
}

func (f *fuse) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		name := ""
		if len(args) > 1 && lua.IsVerb(cmd.Name()) {
			name = f.names[fmt.Sprint(args[1])]
		}
		if name == "" {
			return next(ctx, cmd)
		}
		f.mu.Lock()
		if said := fmt.Sprint(args); said != f.last {
			f.last = said
			f.seen++
		}
		dies := f.seen == f.n
		f.mu.Unlock()
		f.ledger.mu.Lock()
		unnoted := f.ledger.unnoted && name == "remember"
		f.ledger.mu.Unlock()
		if dies && f.before {
			f.die(name, unnoted)
		}
		err := next(ctx, cmd)
		if dies {
			f.die(name, false)
		}
		if unnoted {
			f.ledger.mu.Lock()
			f.ledger.unnoted = false
			f.ledger.mu.Unlock()
		}
		return err
	}
}

// die ends the process without any cleanup. It prints the call, and whether a step's effect is not
// recorded.
func (f *fuse) die(name string, unnoted bool) {
	fmt.Println("dies", name, unnoted)
	os.Exit(1)
}

func (f *fuse) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *fuse) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
