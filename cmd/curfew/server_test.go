package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// typing runs the command with an input.
func typing(t *testing.T, input, args string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = runWith(t.Context(), append([]string{"curfew"}, strings.Fields(args)...), strings.NewReader(input), &out, &errs)
	return code, out.String(), errs.String()
}

// expect runs the command and compares its exit code and words of its outputs.
func expect(t *testing.T, code int, want, args string) (out string) {
	t.Helper()
	got, out, errs := typing(t, "", args)
	if got != code || !strings.Contains(out+errs, want) || code == 0 && errs != "" {
		t.Errorf("curfew %s: exit %d, stdout %q, stderr %q; want exit %d and %q", args, got, out, errs, code, want)
	}
	return out
}

// Flags may stand before and after arguments, and have the same effect.
func TestFlagsMayFollowArguments(t *testing.T) {
	_, url := database(t)
	for i, args := range []string{
		"--redis URL --partitions 2 --output json NAME", "NAME --redis URL --partitions 2 --output json", "--redis URL NAME --partitions=2 -o json",
		"--redis URL -o=json --partitions 2 -- NAME",
	} {
		name := fmt.Sprint("n", i)
		args = strings.NewReplacer("URL", url, "NAME", name).Replace(args)
		out := expect(t, 0, `"partitions":2`, "namespace create "+args)
		if lines := jsonLines(t, out); len(lines) != 1 || lines[0]["namespace"] != name || lines[0]["created"] != true {
			t.Errorf("%s: %s", args, out)
		}
	}
}

func TestTheNearestWordIsProposed(t *testing.T) {
	words := []string{"load", "ls", "show", "prune"}
	for _, row := range []struct{ word, want string }{
		{"laod", "load"}, {"loads", "load"}, {"lod", "load"}, {"sohw", "show"}, {"prnue", "prune"}, {"sl", "ls"}, {"lss", "ls"}, {"x", ""}, {"remove", ""}, {"help", ""},
	} {
		want := ""
		if row.want != "" {
			want = " (did you mean " + row.want + "?)"
		}
		if got := app.DidYouMean(row.word, words); got != want {
			t.Errorf("%s: %q, want %q", row.word, got, want)
		}
	}
}

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := app.Grouped(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// Each command says what is wrong with the server, and what to do.
func TestServerCommandsSayWhatIsWrong(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.Start(t, "--replicaof", strings.Replace(master.Addr, ":", " ", 1))
	locked := redistest.Start(t)
	if err := locked.Client(t).ConfigSet(t.Context(), "requirepass", "secret").Err(); err != nil {
		t.Fatal(err)
	}
	admin := master.Client(t)
	queuetest.Open(t, admin, queue.Config{Namespace: "shop"})
	if err := admin.FunctionFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "~*", "&*", "+@read", "+@connection", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	reader := "redis://reader:secret@" + master.Addr
	for _, row := range []struct {
		args, url string
		code      int
		want      string
	}{
		{"functions load", reader, app.ExitFailed, "ACL SETUSER reader +function|"},
		{"functions ls", reader, app.ExitFailed, "ACL SETUSER reader +function|list"},
		{"functions prune", reader, app.ExitFailed, "ACL SETUSER reader +function|list"},
		{"functions show curfew", reader, app.ExitFailed, "ACL SETUSER reader +function|list"},
		{"functions show curfew", "redis://" + master.Addr, app.ExitNotFound, "there is no library \"curfew\" of Curfew: `curfew functions ls` lists them"},
		{"namespace create x", reader, app.ExitFailed, "ACL SETUSER reader"},
		{"namespace rm shop --yes", reader, app.ExitFailed, "ACL SETUSER reader"},
		{"namespace rm nobody --yes", reader, app.ExitNotFound, "there is no namespace \"nobody\" on this Redis: `curfew namespace ls` lists them"},
		{"namespace rm nobody", reader, app.ExitNotFound, "there is no namespace \"nobody\""},
		{"namespace rm nobody --dry-run", reader, app.ExitNotFound, "there is no namespace \"nobody\""},
		{"namespace rm a{ --yes", reader, app.ExitUsage, `namespace "a{" must be`},
		{"namespace ls nobody shop", reader, app.ExitNotFound, "there is no namespace \"nobody\""},
		{"reap --namespace shop", reader, app.ExitFailed, "ACL SETUSER reader"},
		{"reap --namespace nobody", "redis://" + master.Addr, app.ExitNotFound, "create it with `curfew namespace create` or --create"},
		{"reap --namespace a{ --create", "redis://" + master.Addr, app.ExitUsage, `namespace "a{" must be`},
		{"functions load", "redis://" + replica.Addr, app.ExitUnreachable, "it is a replica: connect to its master " + master.Addr},
		{"namespace create x", "redis://" + replica.Addr, app.ExitUnreachable, "it is a replica"},
		{"namespace rm shop --yes", "redis://" + replica.Addr, app.ExitUnreachable, "it is a replica"},
		{"reap --namespace x --create", "redis://" + replica.Addr, app.ExitUnreachable, "it is a replica"},
		{"functions load", "redis://" + locked.Addr, app.ExitUnreachable, "it requires a password"},
		{"reap --create", "redis://" + locked.Addr, app.ExitUnreachable, "it requires a password"},
		{"functions load", "redis+cluster://" + master.Addr, app.ExitUnreachable, "it is not a cluster"},
		{"functions ls", "redis://reader:secret@" + nobody, app.ExitUnreachable, "give the server's address with --redis or REDIS_URL"},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			code, out, errs := typing(t, "", row.args+" --redis "+row.url)
			if code != row.code || !strings.Contains(errs, row.want) || strings.Contains(errs, "secret") || strings.Count(errs, "curfew: ") != 1 {
				t.Errorf("exit %d, stderr %q, stdout %q; want exit %d and %q", code, errs, out, row.code, row.want)
			}
		})
	}
}

// Nobody types, and then the command is interrupted.
func TestAQuestionCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, _ := io.Pipe()
	defer in.Close()
	cancel()
	if _, err := app.ReadLine(ctx, in); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, row := range []struct{ input, want string }{{"a\nb\n", "a"}, {"a", "a"}, {"", ""}, {"\n", ""}} {
		if got, _ := app.ReadLine(t.Context(), strings.NewReader(row.input)); got != row.want {
			t.Errorf("%q: %q, want %q", row.input, got, row.want)
		}
	}
}

func count(t *testing.T, rdb redis.Cmdable) int64 {
	t.Helper()
	n, err := rdb.DBSize(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Each command works with the rights that docs/how-to/operate.md names, and with no others.
func TestTheRightsOfOperatorsAreThoseOfTheDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := regexp.MustCompile("`(\\+[^`]*)`").FindAllStringSubmatch(string(page), -1)
	commands := [][]string{{"functions load", "functions ls", "functions load --force", "functions prune --yes"}, {"namespace ls", "namespace ls shop"}, {"namespace rm shop --dry-run", "namespace rm shop --yes"}}
	if len(rules) != len(commands) {
		t.Fatalf("the page names rights %q, want three lists", rules)
	}
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		t.Fatal(err)
	}
	older := strings.Replace(facade.Text(), fmt.Sprintf("build = %d}", facade.Build()), "build = 0}", 1)
	other, err := lua.Load(lua.Options{Functions: true, Replace: map[string]string{"store/now": "local function now()\n  return 1\nend\n"}})
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	admin := server.Client(t)
	for i, list := range commands {
		for _, without := range append(strings.Fields(rules[i][1]), "") {
			admin.FlushAll(t.Context())
			if i == 0 {
				admin.FunctionFlush(t.Context())
			}
			queuetest.Enqueue(t, queuetest.Open(t, admin, queue.Config{Namespace: "shop"}), queue.Task{})
			if i == 0 {
				admin.FunctionLoadReplace(t.Context(), older)
				admin.FunctionLoad(t.Context(), other.Text())
			}
			words := []any{"ACL", "SETUSER", "op", "reset", "on", ">secret", "~shop:{*", "&*"}
			for _, rule := range strings.Fields(rules[i][1]) {
				if rule != without {
					words = append(words, rule)
				}
			}
			if err := admin.Do(t.Context(), words...).Err(); err != nil {
				t.Fatal(err)
			}
			failed := false
			for _, args := range list {
				code, out, errs := typing(t, "", args+" --redis redis://op:secret@"+server.Addr)
				failed = failed || code != 0 || strings.Contains(out, "cannot be read")
				if without == "" && (code != 0 || strings.Contains(out, "cannot be read")) {
					t.Errorf("curfew %s with %s: exit %d, %s%s", args, rules[i][1], code, out, errs)
				}
			}
			if without != "" && without != "+multi" && !failed { // go-redis sends the commands after a MULTI that is refused
				t.Errorf("%v work without %s", list, without)
			}
		}
	}
}
