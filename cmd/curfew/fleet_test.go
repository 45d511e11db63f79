package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// anID is the id of a task in the help of commands.
const anID = "0-1M7Z5HK68BFASHEQ59"

// fleetCommands are an invocation of each command of package fleet.
var fleetCommands = []string{
	"queue ls", "queue get mail", "queue pause mail", "queue resume mail", "queue drain mail --yes", "queue limit mail --running 2",
	"kind ls", "kind get render", "kind set render --timeout 5s",
	"worker ls", "worker get w1", "worker drain w1", "agent ls", "agent get " + anID,
	"deadlines", "deadlines --overdue", "deadlines --by queue", "top --once",
}

// atOnce runs the command with each of the arguments at the same time, since most of them wait.
func atOnce(args []string, do func(args string)) {
	var all sync.WaitGroup
	for _, a := range args {
		all.Go(func() { do(a) })
	}
	all.Wait()
}

// Each command says in one line what is wrong, and ends with the right code.
func TestFleetCommandsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	queuetest.Enqueue(t, queuetest.Open(t, admin, queue.Config{}), queue.Task{Queue: "mail"})
	for user, rules := range map[string]string{"stranger": "~other* &* +@all", "reader": "~* &* +@read +@connection +info +evalsha +fcall"} {
		words := []any{"ACL", "SETUSER", user, "on", ">secret"}
		for rule := range strings.FieldsSeq(rules) {
			words = append(words, rule)
		}
		if err := admin.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	dead := redistest.Start(t)
	dead.Kill()
	atOnce(fleetCommands, func(args string) {
		for _, row := range []struct {
			url  string
			code int
			want string
		}{
			{"redis://" + dead.Addr, app.ExitUnreachable, "give the server's address with --redis or REDIS_URL"},
			{"redis://" + server.Addr + " --namespace crufew", app.ExitNotFound, "there is no namespace \"crufew\" on this Redis: give the namespace with --namespace"},
			{"redis://" + server.Addr + " --namespace a{", app.ExitNotFound, "there is no namespace \"a{\""},
			{"redis://stranger:secret@" + server.Addr, app.ExitFailed, "ACL SETUSER stranger ~curfew:{*"},
			{"redis://stranger:wrong@" + server.Addr, app.ExitFailed, "password"},
		} {
			code, out, errs := typing(t, "", args+" --redis "+row.url)
			if code != row.code || out != "" || !strings.Contains(errs, row.want) || strings.Contains(errs, "secret") || strings.Count(errs, "curfew: ") != 1 {
				t.Errorf("%s at %s: exit %d, %q, %q; want exit %d and %q", args, row.url, code, out, errs, row.code, row.want)
			}
		}
	})
}

// The reader of the output may go, as after `| head`.
func TestAClosedOutputEndsAFleetCommandWithoutAnError(t *testing.T) {
	_, url, agent := fleetNamespace(t)
	r, w := io.Pipe()
	r.Close()
	for _, args := range fleetCommands {
		var errs bytes.Buffer
		if code := run(t.Context(), append([]string{"curfew"}, strings.Fields(strings.Replace(args, anID, agent, 1)+" --redis "+url)...), w, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("curfew %s: exit %d, %s", args, code, &errs)
		}
	}
}

// A command that is interrupted while it connects has done nothing, and does not wait for the server.
func TestAnInterruptWhileAFleetCommandConnects(t *testing.T) {
	t.Parallel()
	atOnce(fleetCommands, func(args string) {
		ctx, interrupt := context.WithCancel(t.Context())
		var out, errs bytes.Buffer
		code := run(ctx, append([]string{"curfew"}, strings.Fields(args+" --redis redis://"+silent(t, interrupt))...), &out, &errs)
		want := "curfew: interrupted\n"
		if code != app.ExitInterrupted || out.Len() > 0 || errs.String() != want {
			t.Errorf("curfew %s: exit %d, %q, %q; want %q", args, code, &out, &errs, want)
		}
	})
}

// example matches an invocation in a description, and part a word of it.
var (
	example = regexp.MustCompile(`(?m)^ {7}curfew (.*)$`)
	part    = regexp.MustCompile(`"[^"]*"|\S+`)
)

// Each help has invocations, and they work.
func TestTheExamplesInTheHelpOfFleetCommandsWork(t *testing.T) {
	q, url, agent := fleetNamespace(t)
	groups := map[string]bool{}
	for _, args := range fleetCommands {
		words := strings.Fields(args)
		name := words[0]
		if _, out, _ := curfew(t, name, "--help"); strings.Contains(out, "COMMANDS") {
			groups[words[0]] = true
			name += " " + words[1]
		}
		code, out, errs := curfew(t, append(strings.Fields(name), "--help")...)
		examples := example.FindAllStringSubmatch(out, -1)
		if code != 0 || errs != "" || len(examples) == 0 {
			t.Errorf("curfew %s --help: exit %d, %q, %q, want an example", name, code, out, errs)
		}
		for _, e := range examples {
			var args []string
			for _, word := range part.FindAllString(e[1], -1) {
				args = append(args, strings.Replace(strings.Trim(word, `"`), anID, agent, 1))
			}
			if !strings.HasPrefix(e[1], name) {
				t.Errorf("the help of %s has the example %s", name, e[1])
			}
			if slices.Contains(args, "--wait") {
				time.AfterFunc(200*time.Millisecond, func() { // the worker says goodbye
					for p := range q.Partitions() {
						q.Attempts().Heartbeat(context.Background(), p, "w1", 0, 1, nil)
					}
				})
			}
			if code, out, errs := curfew(t, append(args, "--redis", url)...); code != 0 || errs != "" {
				t.Errorf("curfew %s: exit %d, %q, %q", e[1], code, out, errs)
			}
		}
	}
	for group := range groups {
		if code, out, errs := curfew(t, group, "--help"); code != 0 || !example.MatchString(out) || errs != "" {
			t.Errorf("curfew %s --help: exit %d, %q, %q", group, code, out, errs)
		}
	}
}

// fleetNamespace opens a namespace that has what the examples of package fleet name.
func fleetNamespace(t *testing.T) (q *queue.Queue, url, agent string) {
	t.Helper()
	q, url = namespace(t, 0)
	queuetest.Enqueue(t, q, queue.Task{Queue: "mail"})
	if err := q.DefineKind(t.Context(), "render", queue.Defaults{Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return q, url, suspend(t, &queuetest.Taker{Q: q, Worker: "w1"}, time.Hour, 0)
}
