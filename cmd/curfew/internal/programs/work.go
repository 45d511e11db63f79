package programs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/command"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

const workHelp = `For each task of a --kind, the command after -- runs. For each task of an --http kind, its
payload is sent to the URL by POST. With --flows the worker also runs the definitions that curfew
flow put has stored. docs/how-to/work.md and docs/how-to/flows.md have all details.

  in         stdin, or the body of the request: the payload. Variables such as CURFEW_TASK_ID,
             CURFEW_ATTEMPT and CURFEW_DEADLINE_AT, or headers such as Curfew-Task-Id: the rest
  out        stdout, or the body of the response: the result
  done       exit code 0 · status 2xx
  retry      exit code 75, after the time in a last line of stderr such as retry-after: 30s
             status 429 or 503, after the time in its header Retry-After
  no retry   exit code 65 · status 4xx except 408, 425 and 429
  failed     everything else: the task is retried if it has a retry left

When the time of a task is up, when it is cancelled, and when another worker has it, the command
and all processes that it has started get SIGTERM (on Windows Ctrl-Break, if they have the console
of the worker), and after --grace SIGKILL. A request is cancelled. Redis keeps the time: what a
handler says too late does not count. Each worker also runs a reaper, which ends the tasks that are
late, unless --no-reaper is given. The environment variable WORKER_TASK_TIMEOUT limits how long a
handler can run.

The first Ctrl-C or SIGTERM ends the worker: it takes no more tasks, and waits for those that run.
The second kills what runs. Tasks that have not ended are given back, and lose no retry.

  curfew work --kind resize --concurrency 4 -- ./resize.sh --width 800
  curfew work --http resize=http://127.0.0.1:8080/resize --queue urgent=6 --queue default=1
  curfew work --flows`

func Work() *cli.Command {
	return &cli.Command{
		Name:        "work",
		Usage:       "run a command, or call a URL, for each task; docs/how-to/work.md has the details",
		ArgsUsage:   app.AnotherProgram,
		UsageText:   "curfew work --kind KIND [--kind KIND] [options] -- COMMAND [ARGUMENT...]\ncurfew work --http KIND=URL [--http KIND=URL] [options]\ncurfew work --flows [options]",
		Description: workHelp,
		Flags: append(append(app.NamespaceFlags(), exporterFlags()...),
			&cli.BoolFlag{Name: "create", Usage: "make the namespace if it does not exist"},
			&cli.GenericFlag{Name: "kind", Value: &list{}, Usage: "a `KIND` of tasks that the command runs; may be repeated"},
			&cli.GenericFlag{Name: "http", Value: &list{}, Usage: "a kind of tasks and the URL that gets them, `KIND=URL`; may be repeated"},
			&cli.BoolFlag{Name: "pass-redis", Usage: "let the command see REDIS_URL, CURFEW_REDIS_URL and CURFEW_CONFIG, which can lead to a password"},
			&cli.BoolFlag{Name: "flows", Usage: "run the definitions of flows"},
			&cli.GenericFlag{Name: "http-allow", Value: &list{}, Usage: "with --flows: addresses of a private network that http_request may reach, `CIDR`; may be repeated (default: public ones only)"},
			&cli.GenericFlag{Name: "queue", Value: &list{}, Usage: "a queue to take tasks from, and its weight: `NAME=WEIGHT`, or NAME for weight 1; may be repeated (default: default)"},
			app.NumberFlag("concurrency", 10, 1, 10_000, "how many tasks can run at the same time"),
			app.DurationFlag("lease", 15*time.Second, "if the worker dies, its tasks are given to others after this time; at least 1s"),
			app.DurationFlag("grace", 5*time.Second, "how long a command has between SIGTERM and SIGKILL; a task's own timeout grace can be longer"),
			app.DurationFlag("shutdown-timeout", 30*time.Second, "how long running tasks can continue after the first signal"),
			app.DurationFlag("retry-after", 0, "the delay after exit code 75 without a time of its own; 0s: as the task's back-off says"),
			app.NumberFlag("max-bytes", 1<<20, 1, 512<<20, "how many bytes a result can have; programs that read it need the same limit"),
			&cli.StringFlag{Name: "name", Usage: "the beginning of the worker's id"},
			&cli.BoolFlag{Name: "no-reaper", Usage: "do not end late tasks here: others do it"}),
		Action: work,
	}
}

// list is the value of a flag that may be repeated. Unlike with cli.StringSliceFlag, values can
// contain commas.
type list []string

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func (l *list) String() string { return strings.Join(*l, " ") }

func listOf(c *cli.Context, name string) []string {
	if l, ok := c.Generic(name).(*list); ok {
		return *l
	}
	return nil
}

// work runs a worker until the context ends, and a little longer.
func work(c *cli.Context) error {
	job, err := readJob(c)
	if err != nil {
		return err
	}
	log := app.ProgramLogger(c)
	exported, err := startExporter(c, log)
	if err != nil {
		return err
	}
	defer exported.close()
	rdb, err := app.Connect(c)
	if err != nil {
		return err
	}
	defer rdb.Close()
	q, err := app.OpenOn(c, rdb, queue.Config{Access: queue.AccessWork, MaxBytes: c.Int("max-bytes"), Logger: log})
	if err != nil {
		return app.Endless(c, err)
	}
	q.Engine().OfferFacade(c.Context) // producers of such a fleet are often in other languages, too

	now := make(chan struct{}) // closed by the second signal
	w := worker.New(q, job.config)
	if err := exported.addWorker(w); err != nil {
		return err
	}
	if len(job.kinds) > 0 {
		var hidden []string
		if !c.Bool("pass-redis") {
			hidden = app.Secrets
			if err := command.HideThis(); err != nil {
				log.Warn("Commands of the same user can read the environment of this process", "error", err)
			}
		}
		guard, err := command.StartGuard(log, hidden, job.self, GuardName)
		if err != nil {
			return err
		}
		defer guard.Close()
		program := command.NewCommand(job.argv[0], job.argv[1:]...)
		program.Grace, program.RetryAfter = app.DurationOf(c, "grace"), app.DurationOf(c, "retry-after")
		program.MaxResult, program.Guard, program.Now, program.Log = q.MaxBytes(), guard, now, log
		program.Hide = hidden
		for _, kind := range job.kinds {
			w.HandleRaw(kind, program.Handle)
		}
	}
	for kind, to := range job.posts {
		post := command.NewPost(to, c.Int("concurrency"))
		post.MaxResult, post.Now, post.Log = q.MaxBytes(), now, log
		w.HandleRaw(kind, post.Handle)
	}
	if job.flows {
		flow.RegisterWith(w, flow.Config{Allow: job.allow})
	}
	log.Info("The worker takes tasks; Ctrl-C ends it when its tasks have ended, and a second Ctrl-C at once", "worker", w.ID(), "kinds", job.allKinds())
	return app.Endless(c, runUntilSignalled(c.Context, w, now))
}

// lastReport is how long the worker can report outcomes after the second signal.
const lastReport = 3 * time.Second

// runUntilSignalled runs a worker. The first signal ends ctx, and the worker drains. The second one
// closes now, and all handlers return.
func runUntilSignalled(ctx context.Context, w *worker.Worker, now chan struct{}) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for first := (time.Time{}); ; {
		select {
		case err := <-done:
			return err
		case <-signals:
		}
		if first.IsZero() {
			first = time.Now()
		}
		if time.Since(first) < app.Doubled {
			continue
		}
		close(now)
		select {
		case <-done:
		case <-time.After(lastReport): // Redis is away; the leases end
		}
		return errors.New("a second signal has ended the worker at once: what ran was killed, and its tasks are given back")
	}
}

// workJob holds the values of the flags.
type workJob struct {
	config worker.Config
	kinds  []string // that argv runs
	argv   []string
	posts  map[string]*url.URL // by kind
	flows  bool                // it runs definitions
	allow  []netip.Prefix      // what their requests may reach
	self   string              // this program
}

func (j *workJob) allKinds() string {
	kinds := slices.Clone(j.kinds)
	for kind := range j.posts {
		kinds = append(kinds, kind)
	}
	if j.flows {
		kinds = append(kinds, "flow.*")
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}

// readJob reads the flags, and checks all that can be checked before anything starts.
func readJob(c *cli.Context) (*workJob, error) {
	j := &workJob{kinds: listOf(c, "kind"), posts: map[string]*url.URL{}, flows: c.Bool("flows")}
	seen := map[string]bool{}
	for _, kind := range j.kinds {
		if err := newKind(seen, "--kind", kind); err != nil {
			return nil, err
		}
	}
	for _, text := range listOf(c, "http") {
		if err := j.readPost(seen, text); err != nil {
			return nil, err
		}
	}
	for kind := range seen {
		if j.flows && strings.HasPrefix(kind, "flow.") {
			return nil, app.Usage("the kind %q is that of a flow, which --flows runs: leave one of them out", kind)
		}
	}
	for _, text := range listOf(c, "http-allow") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix != prefix.Masked() || prefix.Addr().Is4In6() {
			return nil, app.Usage("--http-allow %q must be the first address of a network, /, and how many bits are the same, such as 10.1.0.0/16", text)
		} else if !j.flows {
			return nil, app.Usage("--http-allow is for the requests of flows: add --flows, or leave it out")
		}
		j.allow = append(j.allow, prefix)
	}
	if err := j.readCommand(c); err != nil {
		return nil, err
	}
	return j, j.readConfig(c)
}

// newKind returns an error if a kind is not valid, or was given before.
func newKind(seen map[string]bool, flag, kind string) error {
	if err := (&queue.Task{Kind: kind}).Check(1); err != nil {
		return app.Usage("%s: %v", flag, err)
	}
	if seen[kind] {
		return app.Usage("%s: the kind %q is given twice: a task is run in one way", flag, kind)
	}
	seen[kind] = true
	return nil
}

// readPost reads a value of --http.
func (j *workJob) readPost(seen map[string]bool, text string) error {
	kind, address, separated := strings.Cut(text, "=")
	if !separated {
		return app.Usage("--http %q has no kind: write a kind, =, and the URL that gets its tasks, such as --http resize=http://127.0.0.1:8080/resize", text)
	}
	if err := newKind(seen, "--http", kind); err != nil {
		return err
	}
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		// It is not quoted: it can have a password.
		return app.Usage("--http %s=… must be a URL that begins with http:// or https:// and has a host", kind)
	}
	j.posts[kind] = to
	return nil
}

// readCommand reads the command after the flags.
func (j *workJob) readCommand(c *cli.Context) (err error) {
	j.argv = c.Args().Slice()
	switch {
	case len(j.argv) > 0 && j.argv[0] == "":
		return app.Usage("the command after -- is empty")
	case len(j.kinds) > 0 && len(j.argv) == 0:
		return app.Usage("--kind %s needs a command that runs its tasks: add -- and the command at the end", j.kinds[0])
	case len(j.kinds) == 0 && len(j.argv) > 0:
		return app.Usage("the command %q has no kind of tasks to run: add --kind KIND before --", j.argv[0])
	case len(j.kinds) == 0 && len(j.posts) == 0 && !j.flows:
		return app.Usage("work needs to know which tasks to run, and how: write --kind KIND -- COMMAND, --http KIND=URL, or --flows; see `curfew work --help`")
	case len(j.kinds) == 0:
		return nil
	}
	if i := slices.Index(j.argv, "--"); i > 0 {
		return app.Usage("%q is before --, and flags after it are not read: give the kind with --kind, and only the command after --", j.argv[0])
	}
	if _, err := exec.LookPath(j.argv[0]); err != nil {
		return app.Usage("the command cannot be run: %v", err)
	}
	if j.self, err = os.Executable(); err != nil {
		return fmt.Errorf("this program does not find its own file, which ends the commands if the worker is killed: %w", err)
	}
	return nil
}

// maxCommands is how many commands a worker can run at the same time. Each takes two threads, and a Go program
// that needs 10,000 threads is ended.
const maxCommands = 4000

// readConfig reads the flags of the worker itself.
func (j *workJob) readConfig(c *cli.Context) error {
	if n := c.Int("concurrency"); len(j.kinds) > 0 && n > maxCommands {
		return app.Usage("--concurrency %d must be from 1 to %d with --kind: start another worker for more commands at a time", n, maxCommands)
	}
	if d := app.DurationOf(c, "lease"); d < time.Second {
		return app.Usage("--lease %v must be at least 1s", d)
	}
	queues := map[string]int{}
	for _, text := range listOf(c, "queue") {
		name, weight, err := readQueue(text)
		if err != nil {
			return err
		}
		if queues[name] > 0 {
			return app.Usage("--queue: the queue %q is given twice", name)
		}
		queues[name] = weight
	}
	j.config = worker.Config{
		Name: c.String("name"), Concurrency: c.Int("concurrency"), Queues: queues, Lease: app.DurationOf(c, "lease"), NoReaper: c.Bool("no-reaper"),
		ShutdownTimeout: max(app.DurationOf(c, "shutdown-timeout"), 1), // 0 would be the default
		// Commands that must stop have their grace, and are then killed and read to their end.
		ShutdownGrace: app.DurationOf(c, "grace") + 2*time.Second,
	}
	return nil
}

// readQueue reads a value of --queue.
func readQueue(text string) (name string, weight int, err error) {
	name, number, separated := strings.Cut(text, "=")
	if err := (&queue.Task{Kind: "k", Queue: name}).Check(1); err != nil || name == "" {
		return "", 0, app.Usage("--queue %q must be a name and a weight, such as default=1: %v", text, err)
	}
	if !separated {
		return name, 1, nil
	}
	if weight, err = strconv.Atoi(number); err != nil || weight < 1 || weight > math.MaxInt32 {
		return "", 0, app.Usage("--queue %q: the weight %q must be a whole number from 1", text, number)
	}
	return name, weight, nil
}

// GuardName is the command of the guard process.
const GuardName = "work-guard"

// Guard is the process that ends the commands of a worker that was killed. The worker starts it.
func Guard() *cli.Command {
	return &cli.Command{
		Name:   GuardName,
		Usage:  "end the commands of a worker that was killed; curfew work starts it",
		Hidden: true,
		Action: func(*cli.Context) error {
			command.Watch(os.Stdin)
			return nil
		},
	}
}
