package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// long is a process that runs until the test ends, and what it logs.
type long struct {
	*log
	name string
	ends string // the line that it logs when an outage is over
	read int    // lines that a test has compared
}

func startLong(t *testing.T, name, ready, ends string, args ...string) *long {
	t.Helper()
	l := &long{log: &log{}, name: name, ends: ends}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), commandVariable+"=1")
	cmd.Stderr = l.log
	child, err := redisproc.Spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Kill)
	l.await(t, ready)
	l.newLines()
	return l
}

// newLines returns the lines since the last call.
func (l *long) newLines() []string {
	all := strings.Split(strings.TrimSuffix(l.String(), "\n"), "\n")
	defer func() { l.read = len(all) }()
	return all[l.read:]
}

// A worker, a reaper and a server log one line when Redis does not answer, nothing more while that lasts, and one line when it
// answers again.
func TestAnOutageIsLoggedWhenItBeginsAndWhenItEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits while Redis is away")
	}
	for _, row := range []struct {
		name  string
		begin func(*redistest.Server)
		end   func(*redistest.Server)
		quiet bool // calls of a worker that wait for a reply may get it after the outage, so it may log nothing
	}{
		{"Redis hangs",
			func(s *redistest.Server) { syscall.Kill(s.Pid(), syscall.SIGSTOP) },
			func(s *redistest.Server) { syscall.Kill(s.Pid(), syscall.SIGCONT) }, true},
		{"Redis is killed and starts again", func(s *redistest.Server) { s.Kill() }, func(s *redistest.Server) { s.Restart(t) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--appendonly", "yes")
			at := "redis://" + server.Addr
			q := queuetest.Open(t, server.Client(t), queue.Config{})
			worker := startLong(t, "work", "The worker takes tasks", "The calls of the worker succeed again",
				"work", "--redis", at, "--no-reaper", "--concurrency", "4", "--kind", "shout", "--", "sleep", "1")
			reaper := startLong(t, "reap", "The reaper runs", "Expired tasks are timed out again", "reap", "--redis", at)
			serve := startLong(t, "serve", "The server runs", "The metrics can be read from Redis again",
				"serve", "--redis", at, "--listen", "127.0.0.1:0")
			_, url, _ := strings.Cut(serve.String(), "url=")
			url, _, _ = strings.Cut(url, " ")
			scrape := func() { // as Prometheus does
				response, err := http.Get(url + "/metrics")
				if err == nil {
					response.Body.Close()
				}
			}
			shout := func() {
				t.Helper()
				id := queuetest.Enqueue(t, q, queue.Task{Kind: "shout", Timeout: time.Minute}).ID
				ctx := t.Context()
				await.Until(t, "a task ends", func() bool {
					r, err := q.Get(ctx, id)
					return err == nil && r.Status == queue.Completed
				})
				ends(t, q, queuetest.Enqueue(t, q, queue.Task{Queue: "idle", Timeout: time.Millisecond}).ID)
			}
			scrape()
			shout()

			running := queuetest.Enqueue(t, q, queue.Task{Kind: "shout", Timeout: time.Minute}).ID
			await.Until(t, "a task runs whose outcome the worker cannot report", func() bool {
				r, err := q.Get(t.Context(), running)
				return err == nil && r.Status == queue.Running
			})
			row.begin(server)
			for end := time.Now().Add(8 * time.Second); time.Now().Before(end); { // the outage is this long
				scrape()
				time.Sleep(200 * time.Millisecond) // sleeps: the test shows that nothing is logged meanwhile
			}
			row.end(server)
			for _, l := range []*long{worker, reaper, serve} {
				await.Until(t, l.name+" logs that the outage is over, if it has logged that it began", func() bool {
					scrape()
					return strings.Contains(l.String(), l.ends) || row.quiet && l == worker && !strings.Contains(l.String(), "level=ERROR")
				})
			}
			shout()
			for _, l := range []*long{worker, reaper, serve} {
				var begins, ends int
				var others []string
				for _, line := range l.newLines() {
					switch {
					case strings.Contains(line, l.ends):
						ends++
					case strings.Contains(line, "level=ERROR"), strings.Contains(line, "cannot be read from Redis"):
						begins++
					case strings.Contains(line, "Task timed out"):
					default:
						others = append(others, line)
					}
				}
				if begins != ends || begins > 1 || begins == 0 && !(row.quiet && l == worker) || len(others) > 0 {
					t.Errorf("%s logged %d lines when the outage began, %d when it ended, and others: %s\nin all:\n%s", l.name, begins, ends, fmt.Sprintf("%q", others), l)
				}
			}
		})
	}
}

// The lines of go-redis are in the log like all others.
func TestTheLinesOfTheClientAreInTheLog(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	queuetest.Open(t, server.Client(t), queue.Config{})
	reaper := startLong(t, "reap", "The reaper runs", "", "reap", "--verbose", "--redis", "redis://"+server.Addr)
	server.Kill()
	reaper.await(t, "client=go-redis")
	for line := range strings.Lines(reaper.String()) {
		if strings.HasSuffix(line, "\n") && !strings.HasPrefix(line, "time=") {
			t.Errorf("a line is not of the logger: %s", line)
		}
	}
}
