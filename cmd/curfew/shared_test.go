package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// settingsFile returns the path of a file of settings.
func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The command line goes before the environment, that before the file, and the file before the defaults.
func TestSettingsAreFoundInOrder(t *testing.T) {
	q, url := namespace(t, 0)
	path := settingsFile(t, "# the fleet\n\nredis = "+url+"\nnamespace="+q.Namespace()+"\nlimit = 7\noutput = id\nrunning = 3\n")
	id := succeeds(t, url, "enqueue", "k", "1", "--namespace", q.Namespace())
	if code, out, errs := curfew(t, "ls", "--config", path); code != 0 || out != id {
		t.Errorf("with the file: %d, %q, %q, want %q", code, out, errs, id)
	}
	t.Setenv("CURFEW_CONFIG", path)
	if code, out, _ := curfew(t, "ls"); code != 0 || out != id {
		t.Errorf("with the file of the environment: %d, %q, want %q", code, out, id)
	}
	if code, out, _ := curfew(t, "ls", "-o", "json"); code != 0 || !strings.HasPrefix(out, "[{") {
		t.Errorf("the command line: %d, %q", code, out)
	}
	t.Setenv("CURFEW_NAMESPACE", "another")
	if code, _, errs := curfew(t, "ls"); code != app.ExitNotFound || !strings.Contains(errs, `"another"`) {
		t.Errorf("the environment: %d, %q", code, errs)
	}
	code, _, errs := curfew(t, "ls", "-v", "--namespace", q.Namespace())
	for _, want := range []string{`name=namespace value=` + q.Namespace() + ` from="the command line"`, "name=limit value=7 from=" + path, `name=config value=` + path + ` from="the environment"`, `name=redis value="(not shown)"`} {
		if code != 0 || !strings.Contains(errs, want) {
			t.Errorf("--verbose: %d, %s\nwant %s", code, errs, want)
		}
	}
}

func TestAFileOfSettingsIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"namesspace = a":                 "line 1: there is no flag --namesspace (did you mean namespace?)",
		"# a\nnamespace = a\nsecret":     "line 3: write name = value, such as namespace = shop",
		"namespace = a\n\nnamespace = b": "line 3: namespace is there twice",
		"limit = many":                   `config: --limit "many" must be a whole number`,
		"config = /etc/curfew":           "line 1: there is no flag --config",
		"color = blue":                   `--color "blue" must be auto, always or never`,
		"request-timeout = 5":            `--request-timeout "5": `,
	} {
		code, out, errs := curfew(t, "ls", "--config", settingsFile(t, text))
		if code != app.ExitUsage || out != "" || !strings.Contains(errs, want) || strings.Contains(errs, "secret") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %d, %q, want %q", text, code, errs, want)
		}
	}
	if code, _, errs := curfew(t, "ls", "--config", "/nowhere/config"); code != app.ExitUsage || !strings.Contains(errs, "--config: open /nowhere/config") {
		t.Errorf("no such file: %d, %q", code, errs)
	}
}

func TestQuietPrintsIDsAndNoRemarks(t *testing.T) {
	_, url := namespace(t, 0)
	id := succeeds(t, url, "enqueue", "k", "1", "-q")
	if code, out, errs := command(t, url, "", "ls", "-q"); code != 0 || out != id || errs != "" {
		t.Errorf("ls -q: %d, %q, %q, want %q", code, out, errs, id)
	}
	if code, out, errs := command(t, url, "", "ls", "-q", "-o", "jsonl"); code != 0 || !strings.HasPrefix(out, "{") || errs != "" {
		t.Errorf("ls -q -o jsonl: %d, %q, %q", code, out, errs)
	}
	if code, _, errs := command(t, url, "", "get", "-q", "0-1MCC5RM000000001"); code != app.ExitNotFound || errs == "" {
		t.Errorf("an error: %d, %q", code, errs)
	}
	if code, _, errs := command(t, url, "", "ls", "-q", "-v"); code != app.ExitUsage || !strings.Contains(errs, "not both") {
		t.Errorf("quiet and verbose: %d, %q", code, errs)
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	_, url := namespace(t, 0)
	id := strings.TrimSpace(succeeds(t, url, "enqueue", "k", "1"))
	succeeds(t, url, "cancel", id)
	plain := succeeds(t, url, "ls")
	if strings.Contains(plain, "\x1b") {
		t.Errorf("not on a terminal: %q", plain)
	}
	painted := succeeds(t, url, "ls", "--color", "always")
	if !strings.Contains(painted, "\x1b[33mCANCELLED\x1b[0m") {
		t.Errorf("always: %q", painted)
	}
	if got := strings.NewReplacer("\x1b[33m", "", "\x1b[0m", "").Replace(painted); got != plain {
		t.Errorf("colours move words:\n%s\n%s", got, plain)
	}
	t.Setenv("CLICOLOR_FORCE", "1")
	if out := succeeds(t, url, "ls"); out != painted {
		t.Errorf("CLICOLOR_FORCE: %q", out)
	}
	if out := succeeds(t, url, "ls", "--color", "never"); out != plain {
		t.Errorf("never: %q", out)
	}
}

// A server that accepts connections and says nothing, and one that is not there.
func TestACommandGivesUpOnASilentServer(t *testing.T) {
	for name, server := range map[string]struct{ addr, want string }{
		"silent": {silent(t, func() {}), "has not answered for "},
		"away":   {nobody, "connection refused"},
	} {
		for _, args := range [][]string{{"ls"}, {"namespace", "ls"}, {"queue", "ls"}, {"enqueue", "k", "1"}, {"doctor"}, {"export"}} {
			t.Run(name+" "+strings.Join(args, " "), func(t *testing.T) {
				t.Parallel()
				inTime(t, func(slower time.Duration) error {
					limit := (slower * 100 * time.Millisecond).String()
					e := invocation{args: append(args[:len(args):len(args)], "--redis", "redis://"+server.addr, "--request-timeout", limit)}.run(t)
					if e.code != app.ExitUnreachable || strings.Count(e.errs, "\n") != 1 || !strings.Contains(e.errs, server.want) {
						// On a busy machine the time may be over before the connection is refused.
						return lateIf(name == "away" && strings.Contains(e.errs, "has not answered for "+limit), fmt.Errorf("exit %d, %q, want %q", e.code, e.errs, server.want))
					}
					return nil
				})
			})
		}
	}
}

// The time begins again with each answer: a command that takes long is not ended while Redis answers.
func TestAServerThatAnswersIsNotSilent(t *testing.T) {
	q, url := namespace(t, 0)
	inTime(t, func(slower time.Duration) error {
		id := strings.TrimSpace(succeeds(t, url, "enqueue", "k", "1", "--timeout", (2 * slower * time.Second).String())) // longer than the limit of a request
		if code, out, errs := command(t, url, "", "wait", id, "--request-timeout", (slower * time.Second).String()); code != app.ExitTimedOut || !strings.Contains(out, "FAILED") {
			return lateIf(code == app.ExitUnreachable, fmt.Errorf("wait: %d, %q, %q", code, out, errs))
		}
		if r := get(t, q, id); !r.TimedOut {
			return fmt.Errorf("the task is %s", r.Status)
		}
		return nil
	})
}

// With --quiet there is nothing on stderr but errors and questions.
func TestQuietCommandsMakeNoRemarks(t *testing.T) {
	q, url := namespace(t, 0)
	at := " -q --redis " + url
	rdb, key := q.Client(), q.Root(0)+":deadlines"
	queuetest.Enqueue(t, q, queue.Task{Queue: "lonely"})
	for _, args := range []string{"fsck", "fsck --repair", "queue ls", "ls", "cancel --all-matching --dry-run", "cancel --all-matching", "cancel --all-matching --yes"} {
		if strings.HasSuffix(args, "--repair") {
			rdb.ZAdd(t.Context(), key, redis.Z{Score: 5, Member: "0-nobody"})
		}
		if code, _, errs := typing(t, "", args+at); code != 0 || errs != "" {
			t.Errorf("curfew %s -q: exit %d, %q", args, code, errs)
		}
	}
	if code, _, errs := typing(t, "", "namespace rm "+q.Namespace()+" --dry-run --force"+at); code != 0 || errs != "" {
		t.Errorf("a dry run: exit %d, %q", code, errs)
	}
	for i := range 1001 {
		rdb.ZAdd(t.Context(), key, redis.Z{Score: 5, Member: fmt.Sprint("0-nobody", i)})
	}
	if code, _, errs := typing(t, "1001\n", "fsck --repair"+at); code != 0 || errs != "1,001 findings are to be repaired\nType their number to go on: " {
		t.Errorf("a question: exit %d, %q", code, errs)
	}
}

// A command about many names says which of them do not exist.
func TestEachMissingNameIsTold(t *testing.T) {
	q, url := namespace(t, 1)
	at := " --redis " + url
	for args, want := range map[string]string{
		"queue get x default y":    `there is no queue "x" or "y" in this namespace: `,
		"queue get defualt":        `there is no queue "defualt" in this namespace (did you mean default?): `,
		"kind get x y":             `there is no kind "x" or "y" in this namespace: `,
		"worker get x y z":         `there is no worker "x", "y" or "z" in this namespace: `,
		"agent get 0-X 0-Y":        "there is no task 0-X, 0-Y: the id is wrong",
		"explain 0-X 0-Y":          "there is no task 0-X, 0-Y: the id is wrong",
		"namespace ls aaa bbb":     `there is no namespace "aaa" or "bbb" on this Redis: `,
		"namespace ls curfeww":     `there is no namespace "curfeww" on this Redis (did you mean ` + q.Namespace() + `?): `,
		"namespace ls curfew aaaa": `there is no namespace "aaaa" on this Redis: `,
	} {
		if code, _, errs := typing(t, "", args+at); code != app.ExitNotFound || !strings.HasPrefix(errs, "curfew: "+want) {
			t.Errorf("curfew %s: exit %d, %q, want %q", args, code, errs, want)
		}
	}
}
