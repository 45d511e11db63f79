package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/vocabulary"
	"github.com/curfew-dev/curfew/queue"
)

// running is a command that runs until it is interrupted.
type running struct {
	out, errs harness.Logs
	interrupt context.CancelFunc
	ended     chan int // its exit code
}

func start(t *testing.T, args string) *running {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	r := &running{interrupt: interrupt, ended: make(chan int, 1)}
	go func() {
		r.ended <- runWith(ctx, append([]string{"curfew"}, strings.Fields(args)...), strings.NewReader(""), &r.out, &r.errs)
	}()
	return r
}

// until waits for a text in the output, and returns what matches.
func (r *running) until(t *testing.T, pattern string) []string {
	t.Helper()
	var found []string
	await.Until(t, pattern, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(r.out.String())
		return found != nil || len(r.ended) > 0
	})
	if found == nil {
		t.Fatalf("the command ended without %s: stdout %q, stderr %q", pattern, r.out.String(), r.errs.String())
	}
	return found
}

// end interrupts the command, which is no error.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.interrupt()
	if code := await.Receive(t, r.ended, "the end of the command"); code != 0 || r.errs.String() != "" {
		t.Errorf("exit %d, stderr %q, want exit 0", code, r.errs.String())
	}
}

const wokeLine = `  woke +agent +\S+ +was due no later than \d\d:\d\d:\d\d\.\d\d\d, lag \d+ ms\n`

func TestDevShowsATimeoutAndAWakeUpOnBothServers(t *testing.T) {
	t.Parallel()
	_, url := database(t)
	for _, args := range []string{"--port 0", "--redis " + url} {
		t.Run(strings.Fields(args)[0], func(t *testing.T) {
			t.Parallel()
			r := start(t, "dev --demo --timeout 300ms -o text "+args)
			r.until(t, `  TIMEOUT +hang +\S+ +after 0\.300 s, noticed \d+ ms late\n`)
			r.until(t, wokeLine)
			r.until(t, `  completed +agent `)
			r.end(t)
		})
	}
}

// On a real Redis there is a namespace with the name demo, and others are untouched.
func TestDevOnARealServerLeavesASoundNamespace(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	r := start(t, "dev --demo --timeout 50ms -o text --redis redis://user:secret@"+server.Addr)
	if code := await.Receive(t, r.ended, "the end of dev with a wrong password"); code == 0 || strings.Contains(r.errs.String()+r.out.String(), "secret") {
		t.Errorf("exit %d, %s%s", code, &r.out, &r.errs)
	}
	r = start(t, "dev --demo --timeout 50ms -o text --redis redis://default:@"+server.Addr)
	r.until(t, `Redis       redis://127`) // without the user
	r.until(t, `Try         redis-cli -u 'redis://127\.0\.0\.1:\d+' FCALL curfew_enqueue 1 'demo:\{0\}' hang payload '\{\}' timeout 3s\n`)
	r.until(t, wokeLine)
	r.end(t)
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		if !strings.HasPrefix(key, "demo:{0}") {
			t.Errorf("dev wrote the key %s", key)
		}
	}
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "demo"})
	if found, err := inspect.Audit(t.Context(), q); err != nil || len(found) > 0 {
		t.Errorf("Audit = %v, %v", found, err)
	}
}

// A program gets lines of JSON, a server that it can use, and no tasks but its own.
func TestDevWithoutATerminal(t *testing.T) {
	t.Parallel()
	r := start(t, "dev --port 0")
	url := r.until(t, `^\{"kind":"ready","namespace":"curfew","url":"(redis://\S+)"\}\n`)[1]
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	id, err := rdb.Do(t.Context(), "FCALL", "curfew_enqueue", 1, "curfew:{0}", "hang", "timeout", "50ms").Text()
	if err != nil {
		t.Fatal(err)
	}
	r.until(t, `"kind":"task_timed_out","task_id":"`+id)
	r.end(t)
	for line := range strings.Lines(r.out.String()) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if err := vocabulary.CheckJSON(object); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if of := object["task_id"]; of != nil && of != id {
			t.Errorf("there is another task: %s", line)
		}
	}
}

// The demo would take the tasks of others: it does not run in a namespace that the user names, unless he asks for it.
func TestDevHasNoWorkersInANamedNamespace(t *testing.T) {
	t.Parallel()
	rdb, url := database(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	r := start(t, "dev -o text --namespace shop --redis "+url)
	r.until(t, "No worker runs here")
	r.until(t, "This namespace has --events terminal: not everything that happens is shown. Change it with `curfew namespace set`")
	if workers, err := inspect.Workers(t.Context(), q); err != nil || len(workers) > 0 {
		t.Errorf("Workers = %v, %v", workers, err)
	}
	r.end(t)
}

func TestDevSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	server := redistest.Start(t)
	if err := server.Client(t).Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "~*", "&*", "+@read", "+@connection", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	real := " --redis redis://" + server.Addr
	for _, row := range []struct {
		code       int
		want, args string
	}{
		{app.ExitFailed, "address already in use: choose another port with --port, or any free one with --port 0", "dev --port " + port},
		{app.ExitUsage, "--port 65536 must be from 0 to 65535", "dev --port 65536"},
		{app.ExitUsage, "--port -1 must be from 0 to 65535", "dev --port -1"},
		{app.ExitUsage, `--port "http" must be a whole number`, "dev --port http"},
		{app.ExitUsage, "leave one of them out", "dev --port 0" + real},
		{app.ExitUsage, "leave one of them out", "dev --demo --no-demo"},
		{app.ExitUsage, "has no unit: write 5s", "dev --timeout 5"},
		{app.ExitUsage, "--timeout 1h must be from 10ms to 1m", "dev --timeout 1h"},
		{app.ExitUsage, `got "now"`, "dev now"},
		{app.ExitUsage, "there is no flag --prot (did you mean --port?)", "dev --prot 1"},
		{app.ExitUsage, "must begin with redis://", "dev --redis localhost"},
		{app.ExitUsage, "--redis is empty", "dev --redis="},
		{app.ExitUsage, "--namespace must not be empty", "dev --namespace="},
		{app.ExitUsage, "--create is for --redis with --namespace", "dev --create"},
		{app.ExitUsage, "--create is for --redis with --namespace", "dev --create" + real},
		{app.ExitUsage, "namespace", "dev --port 0 --namespace a{b"},
		{app.ExitUsage, `--output "xml" must be text or jsonl`, "dev -o xml"},
		{app.ExitNotFound, `there is no namespace "shp"`, "dev --namespace shp" + real},
		{app.ExitFailed, "ACL SETUSER reader", "dev --redis redis://reader:secret@" + server.Addr},
		{app.ExitUnreachable, "WRONGPASS", "dev --redis redis://reader:wrong@" + server.Addr},
		{app.ExitUnreachable, "give the server's address with --redis", "dev --redis redis://" + nobody},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			code, out, errs := typing(t, "", row.args)
			if code != row.code || !strings.Contains(errs, row.want) || out != "" || strings.Contains(errs, "secret") || strings.Count(errs, "\n") != 1 {
				t.Errorf("exit %d, stdout %q, stderr %q; want exit %d and %q", code, out, errs, row.code, row.want)
			}
		})
	}
}

// The reader of the output ends, as `head` does.
func TestDevEndsWithTheReaderOfItsOutput(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	ended := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		ended <- runWith(t.Context(), []string{"curfew", "dev", "--port", "0", "--demo", "--timeout", "50ms"}, strings.NewReader(""), out, &errs)
	}()
	in.Read(make([]byte, 10))
	in.Close()
	if code := await.Receive(t, ended, "the end of dev"); code != 0 || errs.Len() > 0 {
		t.Errorf("exit %d, stderr %q", code, &errs)
	}
}

func TestDevCreatesANamespaceOnlyIfItIsAsked(t *testing.T) {
	t.Parallel()
	_, url := database(t)
	r := start(t, "dev --namespace shop --create --redis "+url)
	r.until(t, `"namespace":"shop"`)
	r.end(t)
	r = start(t, "dev --namespace shop --redis "+url)
	r.until(t, `"namespace":"shop"`)
	r.end(t)
}

// Two run beside each other on one server: the first shows the tasks of the second too, and each agent wakes once.
func TestTwoDevsOnOneServer(t *testing.T) {
	t.Parallel()
	rdb, url := database(t)
	args := "dev --demo --timeout 100ms -o text --redis " + url
	one := start(t, args)
	one.until(t, `completed +agent`)
	two := start(t, args)
	two.until(t, `completed +agent`)
	one.until(t, `(?s)completed +agent.*completed +agent`)
	for r, n := range map[*running]int{one: 2, two: 1} {
		r.end(t)
		if woke, late := strings.Count(r.out.String(), "  woke "), strings.Count(r.out.String(), "  TIMEOUT "); woke != n || late != n {
			t.Errorf("%d agents woke and %d tasks timed out, want %d and %d:\n%s", woke, late, n, n, r.out.String())
		}
	}
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "demo"})
	if found, err := inspect.Audit(t.Context(), q); err != nil || len(found) > 0 {
		t.Errorf("Audit = %v, %v", found, err)
	}
}

// While its server is away, Ctrl-C ends dev at once, although a call may be on its way.
func TestAnInterruptEndsDevWhoseServerIsGone(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis") // no other server gets it, as it may get a port
	server := redistest.Start(t, "--unixsocket", socket)
	r := start(t, "dev --demo --timeout 1m -o text --redis unix://"+socket)
	r.until(t, `started +hang`)
	server.Kill()
	r.end(t)
}
