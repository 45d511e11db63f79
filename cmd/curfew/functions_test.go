package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

func TestFunctionsAreLoadedListedAndShown(t *testing.T) {
	server := redistest.Start(t)
	rdb, url := server.Client(t), " --redis redis://"+server.Addr
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		t.Fatal(err)
	}
	mine := facade.Build()
	build := fmt.Sprint("build ", mine)
	expect(t, 0, server.Addr+"  has no library of Curfew: `curfew functions load` loads it", "functions ls"+url)
	expect(t, 0, server.Addr+"  loaded "+build, "functions load"+url)
	if got, err := rdb.FCall(t.Context(), "curfew_open", []string{"x:{0}"}).Result(); err != nil {
		t.Errorf("curfew_open: %v, %v", got, err)
	}
	expect(t, 0, "has "+build+" already", "functions load"+url)
	out := expect(t, 0, "the one of this program", "functions ls"+url)
	if strings.Count(out, "\n") != 1 {
		t.Errorf("ls prints %q, want a line", out)
	}
	if out := expect(t, 0, "", "functions show"); out != facade.Text() {
		t.Errorf("show prints %d bytes, want the %d of the library", len(out), len(facade.Text()))
	}
	if out := expect(t, 0, "", "functions show curfew"+url); out != facade.Text() {
		t.Errorf("show curfew prints %d bytes, want the %d of the library", len(out), len(facade.Text()))
	}
	expect(t, app.ExitNotFound, "there is no library \"curfw\" of Curfew (did you mean curfew?)", "functions show curfw"+url)

	newer := strings.Replace(facade.Text(), fmt.Sprintf("build = %d}", mine), "build = 7777}", 1)
	if err := rdb.FunctionLoadReplace(t.Context(), newer).Err(); err != nil {
		t.Fatal(err)
	}
	expect(t, app.ExitFailed, "left build 7777, which is newer than "+build+" of this program", "functions load"+url)
	expect(t, app.ExitFailed, "not loaded: another version is there; use that version of curfew, or --force", "functions load"+url)
	expect(t, 0, "of another version", "functions ls"+url)
	if lines := jsonLines(t, expect(t, app.ExitFailed, "", "functions load -o json"+url)); lines[0]["did"] != "newer" || lines[0]["before"] != 7777.0 || lines[0]["node"] != server.Addr {
		t.Errorf("%v", lines)
	}
	expect(t, 0, "replaced build 7777 by "+build, "functions load --force"+url)
	lines := jsonLines(t, expect(t, 0, "", "functions ls -o json"+url))
	if len(lines) != 1 || lines[0]["library"] != "curfew" || lines[0]["build"] != float64(mine) || lines[0]["mine"] != true || lines[0]["kind"] != "facade" || lines[0]["function_count"].(float64) < 30 {
		t.Errorf("%v", lines)
	}

	if err := rdb.FunctionLoadReplace(t.Context(), "#!lua name=curfew\nredis.register_function('theirs', function() return 'theirs' end)").Err(); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"", " --force"} {
		expect(t, app.ExitFailed, "left the library curfew, which belongs to another program", "functions load"+flag+url)
	}
	expect(t, 0, "belongs to another program", "functions ls"+url)
	if got, err := rdb.FCall(t.Context(), "theirs", nil).Result(); got != "theirs" {
		t.Errorf("their function: %v, %v", got, err)
	}
}

// The text can be loaded by redis-cli, as the help says.
func TestRedisCliLoadsWhatShowPrints(t *testing.T) {
	server := redistest.Start(t)
	host, port, _ := strings.Cut(server.Addr, ":")
	cmd := exec.Command("redis-cli", "-h", host, "-p", port, "-x", "FUNCTION", "LOAD", "REPLACE")
	cmd.Stdin = strings.NewReader(expect(t, 0, "", "functions show"))
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "curfew" {
		t.Fatalf("redis-cli: %v, %s", err, out)
	}
	expect(t, 0, "curfew_open", "functions show curfew --redis redis://"+server.Addr)
	if err := server.Client(t).FCall(t.Context(), "curfew_open", []string{"x:{0}"}).Err(); err != nil {
		t.Error(err)
	}
}

func TestPruneAsksBeforeItDeletes(t *testing.T) {
	server := redistest.Start(t)
	rdb, url := server.Client(t), " --redis redis://"+server.Addr
	other, err := lua.Load(lua.Options{Functions: true, Replace: map[string]string{"store/now": "local function now()\n  return 1800000000000\nend\n"}})
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(other.Text(), "#!lua name="), "\n")
	expect(t, 0, "no library to delete", "functions prune"+url)
	q := queuetest.Open(t, rdb, queue.Config{Library: other})
	expect(t, 0, "1 library would be deleted: --yes deletes", "functions prune"+url)
	expect(t, 0, name, "functions prune"+url)
	for _, deleted := range []bool{false, true} {
		args := "functions prune -o json" + url
		if deleted {
			args += " -y"
		}
		lines := jsonLines(t, expect(t, 0, "", args))
		if len(lines) != 1 || lines[0]["library"] != name || lines[0]["deleted"] != deleted || lines[0]["kind"] != "calls" {
			t.Errorf("%s: %v", args, lines)
		}
	}
	expect(t, 0, "no library to delete", "functions prune --yes"+url)
	queuetest.Enqueue(t, q, queue.Task{}) // its program loads it again
	expect(t, 0, "deleted 1 library", "functions prune --yes"+url)
}
