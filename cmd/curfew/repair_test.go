package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestFsckRepairs(t *testing.T) {
	t.Parallel()
	q, url := namespace(t, 0)
	rdb, root := q.Engine().Client(), q.Root(0)
	damaged := queuetest.Enqueue(t, q, queue.Task{Timeout: time.Hour}).ID
	ctx := t.Context()
	damage := func() {
		rdb.ZRem(ctx, root+":ready:default", damaged)
		rdb.ZAdd(ctx, root+":deadlines", redis.Z{Score: 5, Member: damaged})
	}
	foreign := func() { rdb.Set(ctx, root+":what", "x", 0) }
	for _, row := range []struct {
		args      string
		before    func()
		code      int
		out, errs string
	}{
		{"fsck --repair", nil, 0, "", " is sound\n"},
		{"fsck --repair --dry-run -o jsonl", damage, app.ExitFailed, `"repair":"add to ready:default, add to deadlines"`, "2 findings in"},
		{"fsck --repair --dry-run", nil, app.ExitFailed, "add to ready:default, add to deadlines\n", "2 findings in"}, // the first changed nothing
		{"fsck --repair", nil, 0, "add to ready:default, add to deadlines\n", "2 findings are to be repaired\n"},
		{"fsck", nil, 0, "", " is sound\n"},
		{"fsck --repair -o jsonl", func() { damage(); foreign() }, app.ExitFailed, `"cure":"the key is not Curfew's`, "1 finding is left in"},
		{"fsck --repair", nil, app.ExitFailed, "left: the key is not Curfew's or has the wrong type: rename or delete it", "1 finding is left in"},
		{"fsck --dry-run", nil, app.ExitUsage, "", "--dry-run needs --repair"},
		{"fsck --yes", nil, app.ExitUsage, "", "--yes needs --repair"},
		{"fsck --repair --yes --dry-run", nil, app.ExitUsage, "", "leave one of them out"},
		{"fsck --repair now", nil, app.ExitUsage, "", `fsck takes no argument, and got "now"`},
		{"fsck --repiar", nil, app.ExitUsage, "", "(did you mean --repair?)"},
		{"fsck --repair --namespace shop", nil, app.ExitNotFound, "", `there is no namespace "shop"`},
		{"fsck --repair --redis redis://127.0.0.1:1", nil, app.ExitUnreachable, "", "127.0.0.1:1"},
	} {
		if row.before != nil {
			row.before()
		}
		args := strings.Fields(row.args)
		if !slices.Contains(args, "--redis") {
			args = append(args, "--redis", url)
		}
		code, out, errs := curfew(t, args...)
		if code != row.code || !strings.Contains(out, row.out) || !strings.Contains(errs, row.errs) || row.out == "" && out != "" {
			t.Errorf("curfew %s: exit %d, stdout %q, stderr %q; want exit %d, %q and %q", row.args, code, out, errs, row.code, row.out, row.errs)
		}
	}
}

func TestFsckAsksBeforeItRepairsMuch(t *testing.T) {
	q, url := namespace(t, 0)
	rdb, key, ctx := q.Engine().Client(), q.Root(0)+":deadlines", t.Context()
	for i := range 1001 {
		rdb.ZAdd(ctx, key, redis.Z{Score: 5, Member: fmt.Sprint("0-nobody", i)})
	}
	for _, row := range []struct {
		args, stdin string
		code        int
		errs        string
	}{
		{"fsck --repair", "", app.ExitFailed, "nothing was repaired: type the number of findings, or give --yes"},
		{"fsck --repair", "y\n", app.ExitFailed, "nothing was repaired: y is not the number of findings, 1,001"},
		{"fsck --repair -o id", "1,001\n", 0, " is sound"},
	} {
		code, out, errs := typing(t, row.stdin, row.args+" --redis "+url)
		if code != row.code || !strings.Contains(errs, row.errs) || (code == 0) != (out != "") {
			t.Errorf("curfew %s < %q: exit %d, stdout %.100q, stderr %q, want exit %d and %q", row.args, row.stdin, code, out, errs, row.code, row.errs)
		}
	}
	interrupted, cancel := context.WithCancel(ctx)
	cancel()
	var errs bytes.Buffer
	if code := runWith(interrupted, strings.Fields("curfew fsck --repair --redis "+url), strings.NewReader(""), io.Discard, &errs); code != app.ExitInterrupted {
		t.Errorf("interrupted: exit %d, %s", code, &errs)
	}
}

// A user who may only read gets an error that names the missing right, and nothing changes.
func TestFsckRepairsNothingWithoutTheRights(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	q := queuetest.Open(t, admin, queue.Config{})
	admin.ZAdd(t.Context(), q.Root(0)+":deadlines", redis.Z{Score: 5, Member: "0-nobody"})
	if err := admin.Do(t.Context(), "acl", "setuser", "reader", "reset", "on", ">secret", "~*", "&*", "+@read", "+@connection", "+evalsha", "+eval", "+script", "+time", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	before := redistest.Digest(t, admin, q.Root(0))
	code, out, errs := curfew(t, "fsck", "--repair", "--redis", "redis://reader:secret@"+server.Addr, "--namespace", q.Namespace())
	if code != app.ExitFailed || out != "" || !strings.Contains(errs, "ACL SETUSER reader") || redistest.Digest(t, admin, q.Root(0)) != before {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
}
