package main

import (
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// No command works on a namespace that a newer release has upgraded, or in which it has written what older programs must not touch. Each
// says so, and changes nothing.
func TestNoCommandWorksOnANewerVersion(t *testing.T) {
	for _, version := range []string{"3", "2+parks"} {
		t.Run(version, func(t *testing.T) { refusedByAll(t, version) })
	}
}

func refusedByAll(t *testing.T, version string) {
	rdb, url := database(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	id := queuetest.Enqueue(t, q, queue.Task{}).ID
	if err := rdb.HSet(t.Context(), q.Root(0), "version", version).Err(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CURFEW_REDIS_URL", url)
	t.Setenv("CURFEW_NAMESPACE", "shop")
	before := redistest.Dump(t, rdb, "")
	for _, args := range []string{
		"enqueue k --timeout 1m", "get ID", "ls", "wait ID", "cancel ID", "retry ID", "rm ID", `resolve ID 1`, "signal ID go", "explain ID", "deadlines", "events", "export",
		"cancel --all-matching --queue default --yes", "retry --all-matching --queue default --yes", "rm --all-matching --queue default --yes",
		"queue ls", "queue get default", "queue pause default", "queue resume default", "queue drain default --yes", "queue limit default --running 5",
		"kind ls", "kind get k", "kind set k --timeout 1m", "worker ls", "worker get w", "worker drain w", "agent ls", "agent get ID", "top --once", "fsck",
		"work --kind k -- true", "reap",
	} {
		var out, errs strings.Builder
		words := append([]string{"curfew"}, strings.Fields(strings.ReplaceAll(args, "ID", id))...)
		code := run(t.Context(), words, &out, &errs)
		if code != app.ExitFailed || out.String() != "" || !strings.Contains(errs.String(), "the namespace has a newer version: upgrade this program") {
			t.Errorf("curfew %s: exit %d, stdout %q, stderr %q", args, code, &out, &errs)
		}
	}
	url = " --redis " + url
	expect(t, app.ExitFailed, "docs/how-to/upgrade.md", "doctor --namespace shop"+url)
	expect(t, app.ExitFailed, "its records have version "+version, "namespace create shop"+url)
	expect(t, 0, "this program does not know that version", "namespace ls"+url)
	expect(t, app.ExitFailed, "or give --force", "namespace rm shop --yes"+url)
	if after := redistest.Dump(t, rdb, ""); after != before {
		t.Errorf("something was changed:\n%s", redistest.Diff(before, after))
	}
}
