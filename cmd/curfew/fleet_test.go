package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
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
			if slices.Contains(args, "--wait") { // w1 comes again, is asked to stop, and then says goodbye
				goodbye(t, q, "w1")
				lives(t, q, "w1", queue.WorkerRunning, "")
				r := start(t, strings.Join(append(args, "--redis", url), " "))
				awaitAsked(t, q, "w1")
				goodbye(t, q, "w1")
				if code := await.Receive(t, r.ended, "the end of "+e[1]); code != 0 || r.errs.String() != "" {
					t.Errorf("curfew %s: exit %d, %q", e[1], code, r.errs.String())
				}
				continue
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
