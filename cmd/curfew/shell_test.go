package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

func TestWordsAreCompleted(t *testing.T) {
	rdb, url := database(t)
	t.Setenv("CURFEW_REDIS_URL", url)
	t.Setenv("REDIS_URL", "redis://"+nobody)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	id := queuetest.Enqueue(t, q, queue.Task{Queue: "email", Kind: "letter", Timeout: time.Hour}).ID
	if _, err := flow.Put(t.Context(), q, []byte(oneDefinition("k"))); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ line, want string }{
		{"flow show --namespace shop |", "publish"},
		{"flow graph --namespace shop p|", "publish"},
		{"flow get --namespace shop |", id},
		{"func|", "functions"},
		{"functions |", "load ls show prune"},
		{"functions l|", "load ls"},
		{"nothing |", ""},
		{"__|", ""},
		{"doctor --st|", "--strict"},
		{"doctor --role |", "all produce work reap read"},
		{"doctor --role p|", "produce"},
		{"namespace create --events |", "all terminal none"},
		{"doctor --namespace |", "shop"},
		{"doctor --namespace sh|", "shop"},
		{"doctor --namespace x|", ""},
		{"namespace rm |", "shop"},
		{"namespace rm shop |", ""},
		{"explain --namespace shop |", id},
		{"explain --namespace=shop 0|", id},
		{"explain --namespace shop 0-nobody 0|", id},
		{"explain --namespace shop -- |", id},
		{"explain --namespace shpo |", ""},
		{"explain |", ""},
		{"events --kind |", ""},
		{"completion |", "bash fish powershell zsh"},
		{"completion bash |", ""},
		{"explain --namespace shop --redis redis://127.0.0.1:1 |", ""},
		{"explain --redis nonsense |", ""},
	} {
		words := strings.Split(strings.TrimSuffix(row.line, "|"), " ")
		inTime(t, func(time.Duration) error { // Redis has 300 ms to answer
			code, out, errs := curfew(t, append([]string{"__complete", "--"}, words...)...)
			var got []string
			for line := range strings.Lines(out) {
				word, _, _ := strings.Cut(line, "\t")
				got = append(got, word)
			}
			if code != 0 || errs != "" || strings.Join(got, " ") != row.want {
				return lateIf(out == "", fmt.Errorf("%s: exit %d, %q, stderr %q; want %q", row.line, code, got, errs, row.want))
			}
			return nil
		})
	}
}

// Completion ends soon when the server does not answer.
func TestCompletionDoesNotWaitForRedis(t *testing.T) {
	t.Parallel()
	url := "redis://" + silent(t, func() {})
	inTime(t, func(time.Duration) error {
		runs := aCall(t, url)
		if code, out, errs := curfew(t, "__complete", "--", "explain", "--redis", url, ""); code != 0 || out+errs != "" {
			return fmt.Errorf("exit %d, %q %q", code, out, errs)
		}
		if !runs() {
			return lateError{errors.New("completion takes as long as a call")}
		}
		return nil
	})
}

// Names in Redis are of anybody: one that could control a terminal is not proposed.
func TestOddNamesAreNotCompleted(t *testing.T) {
	rdb, url := database(t)
	queuetest.Open(t, rdb, queue.Config{})
	if err := rdb.ZAdd(t.Context(), "curfew:{0}:deadlines", redisZ("0-\x1b[31m"), redisZ("0-fine")).Err(); err != nil {
		t.Fatal(err)
	}
	inTime(t, func(time.Duration) error {
		if _, out, _ := curfew(t, "__complete", "--", "explain", "--redis", url, ""); out != "0-fine\t\n" {
			return lateIf(out == "", fmt.Errorf("%q", out))
		}
		return nil
	})
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		code, out, errs := curfew(t, "completion", shell)
		if code != 0 || errs != "" || !strings.Contains(out, "curfew __complete") {
			t.Errorf("%s: exit %d, %q, %q", shell, code, out, errs)
		}
		if path, err := exec.LookPath(shell); err == nil && (shell == "bash" || shell == "zsh" || shell == "fish") {
			check := exec.Command(path, "-n")
			check.Stdin = strings.NewReader(out)
			if said, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s -n: %v, %s", shell, err, said)
			}
		}
	}
}

// Bash calls the function of the script with the words of the command line.
func TestTheScriptOfBashProposesWords(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := curfew(t, "completion", "bash")
	_, load, _ := curfew(t, "__complete", "--", "functions", "l")
	run := exec.Command(bash, "-c", script+`
curfew() { [[ "$1 $2 $3 $4" == "__complete -- functions l" ]] && cat <<<"$PROPOSED"; }
COMP_WORDS=(curfew functions l) COMP_CWORD=2
_curfew
printf '%s.' "${COMPREPLY[@]}"`)
	run.Env = append(run.Environ(), "PROPOSED="+load)
	if out, err := run.CombinedOutput(); err != nil || string(out) != "load.ls." {
		t.Errorf("%q, %v, want load.ls.", out, err)
	}
}

func TestHelpIsThatOfTheCommand(t *testing.T) {
	for _, words := range []string{"", "doctor", "functions", "functions load", "namespace rm"} {
		_, want, _ := curfew(t, append(strings.Fields(words), "--help")...)
		code, out, errs := curfew(t, append([]string{"help"}, strings.Fields(words)...)...)
		if code != 0 || errs != "" || out != want || !strings.Contains(out, "USAGE") {
			t.Errorf("help %s: exit %d, %q, stderr %q, want %q", words, code, out, errs, want)
		}
	}
	if _, out, _ := curfew(t, "--help"); strings.Contains(out, "__") {
		t.Errorf("hidden commands are listed: %s", out)
	}
}

func TestVersion(t *testing.T) {
	code, out, errs := curfew(t, "version", "-o", "json")
	var is struct {
		Program, Go string
		Build       int
		Records     []string
	}
	if err := json.Unmarshal([]byte(out), &is); code != 0 || errs != "" || err != nil || is.Program == "" || is.Build < 1 || len(is.Records) == 0 || !strings.HasPrefix(is.Go, "go1.") {
		t.Errorf("exit %d, %q, %q, %v", code, out, errs, err)
	}
	if code, out, _ := curfew(t, "version"); code != 0 || !strings.HasPrefix(out, "curfew "+is.Program+"\n") {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestTheTreeOfCommandsIsPrinted(t *testing.T) {
	for _, form := range []string{"markdown", "man"} {
		code, out, errs := curfew(t, "__docs", form)
		if code != 0 || errs != "" || !strings.Contains(out, "doctor") || strings.Contains(out, "__complete") {
			t.Errorf("%s: exit %d, stderr %q, %.200q", form, code, errs, out)
		}
	}
	if code, _, errs := curfew(t, "__docs", "pdf"); code != app.ExitUsage || !strings.Contains(errs, `"pdf" must be markdown, man, metrics, http, openapi, flow or schema`) {
		t.Errorf("exit %d, %q", code, errs)
	}
}

func redisZ(member string) redis.Z { return redis.Z{Score: 5e15, Member: member} }
