package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The rights of a role in docs/how-to/security.md are enough for the commands of that role. A reader changes nothing.
func TestTaskCommandsWorkWithTheRightsOfTheirRole(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/security.md")
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	admin := server.Client(t)
	for _, role := range []string{"producer", "reader"} {
		rule := regexp.MustCompile("(?s)ACL SETUSER " + role + " (on .*?)\n```").FindSubmatch(page)
		if rule == nil {
			t.Fatalf("the page has no rule for a %s", role)
		}
		words := []any{"ACL", "SETUSER", role}
		for word := range strings.FieldsSeq(string(rule[1])) {
			words = append(words, word)
		}
		if role == "reader" {
			words = append(words, ">secret")
		}
		if err := admin.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	both := []any{"ACL", "SETUSER", "both"}
	for _, rule := range regexp.MustCompile("(?s)ACL SETUSER (?:producer|reader) (on .*?)\n```").FindAllSubmatch(page, -1) {
		for word := range strings.FieldsSeq(strings.ReplaceAll(string(rule[1]), "resetchannels", "")) {
			both = append(both, word)
		}
	}
	if err := admin.Do(t.Context(), both...).Err(); err != nil {
		t.Fatal(err)
	}
	q := queuetest.Open(t, admin, queue.Config{})
	id := queuetest.Enqueue(t, q, queue.Task{}).ID
	promise := queuetest.Enqueue(t, q, queue.Task{Promise: true}).ID
	if _, err := flow.Put(t.Context(), q, []byte(`{"id":"review","nodes":[{"id":"ask","action_id":"wait"},{"id":"next","action_id":"wait"}],"transitions":[{"from":"ask","to":"next"}],"actions":[{"id":"wait","kind":"wait"}]}`)); err != nil {
		t.Fatal(err)
	}
	run := queuetest.Enqueue(t, q, queue.Task{Kind: "flow.review", Queue: "flows"}).ID
	w := worker.New(q, worker.Config{Queues: map[string]int{"flows": 1}})
	flow.Register(w)
	for r, err := w.RunOne(t.Context()); r != nil || err != nil; r, err = w.RunOne(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	as := func(role string) string { return " --redis redis://" + role + ":secret@" + server.Addr }
	for _, row := range []struct {
		role, args string
		code       int
	}{
		{"reader", "get " + id, 0}, {"reader", "ls", 0}, {"reader", "explain " + id, 0}, {"reader", "events", 0}, {"reader", "export", 0},
		{"reader", "cancel " + id, app.ExitFailed}, {"reader", "enqueue k", app.ExitFailed}, {"reader", "rm " + id, app.ExitFailed},
		{"reader", "cancel --all-matching --yes", app.ExitFailed}, {"reader", "resolve " + promise + " 1", app.ExitFailed},
		{"reader", "flow ls", 0}, {"reader", "flow show review", 0}, {"reader", "flow get " + run, 0}, {"reader", "flow runs review", 0}, {"reader", "flow run review", app.ExitFailed},
		{"producer", "flow run review", 0}, {"producer", "flow resume " + run + " ask", 0}, {"reader", "flow resume " + run + " ask", app.ExitFailed},
		{"producer", "enqueue k", 0}, {"producer", "cancel " + id, 0}, {"producer", "retry " + id, 0}, {"producer", "wait --mode settled " + id, 0},
		{"producer", "resolve " + promise + " 1", 0}, {"producer", "rm " + id, 0}, {"producer", "cancel --all-matching --yes", app.ExitFailed},
		{"both", "cancel --all-matching --yes", 0}, {"both", "rm --all-matching --queue default --kind k --yes", 0},
	} {
		code, out, errs := typing(t, "", row.args+as(row.role))
		if code != row.code || code != 0 && (!strings.Contains(errs, "ACL SETUSER "+row.role) || out != "") {
			t.Errorf("%s as a %s: exit %d, %.300s%s", row.args, row.role, code, out, errs)
		}
	}
}
