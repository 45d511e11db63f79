package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/pages"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

var update = flag.Bool("update", false, "write the helps of the commands to testdata")

// commandVariable makes this test binary the command curfew-bench.
const commandVariable = "CURFEW_BENCH_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
	}
	redistest.Main(m)
}

// run runs the command with a context, and returns its exit code and what it writes.
func run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = program().Run(ctx, append([]string{name}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// Wrong use exits with code 2, writes nothing to stdout, and says on stderr what to do.
func TestWrongUseSaysWhatToDo(t *testing.T) {
	for _, test := range []struct {
		args string
		want string
	}{
		{"bogus", `no command "bogus": see ` + "`curfew-bench --help`"},
		{"throughputt", "(did you mean throughput?)"},
		{"--vs asynq", "there is no flag --vs: see `curfew-bench --help`"},
		{"help nothing", "there is no command `curfew-bench nothing`: see `curfew-bench --help`"},
		{"version now", `version takes no argument, and got "now": see ` + "`curfew-bench version --help`"},
		{"memory --taks 5", "there is no flag --taks (did you mean --tasks?): see `curfew-bench memory --help`"},
		{"memory --tasks many", `--tasks "many" must be a whole number`},
		{"memory --tasks", "--tasks needs a value"},
		{"hold", "hold is used by recovery only"},
		{"http --curfew ./nothing", "--curfew: "},
		{"memory --runs 0", "--runs 0 must be from 1"},
		{"memory --tasks -5", "--tasks -5 must be from 1"},
		{"throughput --partitions 0", "--partitions 0 must be from 1"},
		{"throughput --vs river", `--vs "river" must be asynq`},
		{"throughput --vs asynq --partitions 4", "leave one of them out"},
		{"throughput --vs asynq --full", "leave one of them out"},
		{"throughput --vs asynq --runs 0", "--runs 0 must be from 1"},
		{"throughput --vs asynq --servers 0", "--servers 0 must be from 1"},
		{"throughput --servers 2", "add --vs asynq"},
		{"dispatch --pause 1s", "add --vs asynq"},
		{"dispatch --vs asynq --tasks 0", "--tasks 0 must be from 1"},
		{"dispatch --vs sidekiq", `--vs "sidekiq" must be asynq`},
		{"detect --running 5", "add --vs asynq"},
		{"detect --vs asynq --running 5000", "--running 5000 must be from 1 to 1000"},
		{"recovery --within 5s", "add --vs asynq"},
		{"recovery --vs asynq --lease 2s", "leave one of them out"},
		{"recovery --vs asynq --within 1ms", "--within 1ms must be from 1s to 1h"},
		{"recovery --vs asynq --kills 500", "--kills 500 must be from 1 to 100"},
		{"recovery --kills 500", "--kills 500 must be from 1 to 100"},
		{"throughput --redis redis://localhost", "add --vs asynq"},
		{"throughput --threshold drain>=1", "add --vs asynq"},
		{"throughput --vs asynq --namespace x", "add --redis"},
		{"throughput --vs asynq --redis redis://localhost --aof", "leave one of them out"},
		{"throughput --vs asynq --redis redis://localhost --namespace=", "--namespace must not be empty"},
		{"throughput --vs asynq --redis localhost:6379", "must begin with redis://"},
		{"throughput --vs asynq --redis redis+cluster://localhost:6379", "and not a cluster or sentinels"},
		{"throughput --vs asynq --threshold drain", "write enqueue_and_drain>=50000"},
		{"throughput --vs asynq --threshold drained>=5", "the figures are enqueue_16, enqueue_64, enqueue_lists, drain, enqueue_and_drain"},
		{"detect --vs asynq --threshold detect_pending_p99>=2x", "asynq never does this"},
		{"dispatch --vs asynq --threshold dispatch_p99<=10", "write dispatch_max<=20ms"},
		{"micro --runs 0", "--runs 0 must be from 1"},
		{"micro --tasks 0", "--tasks 0 must be from 1"},
		{"micro -o csv", "table, json or benchstat"},
		{"micro now", `got "now"`},
		{"memory -o xml", "table, json or benchstat"},
		{"detect --over -1s", "is negative"},
		{"detect --over 1e3", "write 1000s"},
		{"detect --over 0s --others -1", "--others -1 must not be negative"},
		{"detect --over 1d --runs 0", "--runs 0 must be from 1"},
		{"memory extra", `got "extra"`},
	} {
		code, out, errs := run(t.Context(), strings.Fields(test.args)...)
		if code != app.ExitUsage || !strings.Contains(errs, test.want) || out != "" || !strings.HasPrefix(errs, "curfew-bench: ") {
			t.Errorf("curfew-bench %s: exit %d, stderr %q, stdout %q; want exit 2 and %q", test.args, code, errs, out, test.want)
		}
	}
}

// Each file of testdata/help is the help of a command. Read it before you commit it.
func TestHelpsAreThoseOfTestdata(t *testing.T) {
	helps := map[string][]string{name: {"--help"}}
	for _, command := range measurements() {
		if !command.Hidden {
			helps[command.Name] = []string{command.Name, "--help"}
		}
	}
	for file, args := range helps {
		code, got, errs := run(t.Context(), args...)
		if code != 0 || errs != "" {
			t.Errorf("curfew-bench %q: exit %d, %s", args, code, errs)
		}
		path := filepath.Join("testdata", "help", file+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || got != string(want) {
			t.Errorf("%s: %v: the command prints\n%s\nwant\n%s\n(write it with -update)", path, err, got, want)
		}
		for line := range strings.Lines(got) {
			if strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
				t.Errorf("curfew-bench %q: the line %q ends with a space", args, line)
			}
		}
		if invocation := "    curfew-bench " + command(file); !strings.Contains(got, "\n   "+invocation) {
			t.Errorf("curfew-bench %q has no invocation, as\n%s", args, invocation)
		}
	}
}

// command returns the command that a help shows how to invoke.
func command(file string) string {
	if file == name {
		return "throughput"
	}
	return file
}

func TestTheReferenceIsWhatTheCommandPrints(t *testing.T) {
	_, want, _ := run(t.Context(), "__docs", "markdown")
	if got, err := os.ReadFile("../../docs/reference/bench.md"); err != nil || string(got) != want {
		t.Errorf("docs/reference/bench.md is not what the command prints: run make docs (%v)", err)
	}
}

// Each command line of the pages is valid, as the test of the same name in cmd/curfew says.
func TestTheCommandLinesOfThePagesAreValid(t *testing.T) {
	lines, err := pages.Lines("../..", name)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	tried := map[string]bool{}
	for _, l := range lines {
		text := strings.Join(l.Words, " ")
		if tried[text] {
			continue
		}
		tried[text] = true
		if code, _, errs := run(ended, l.Words[1:]...); code == app.ExitUsage {
			t.Errorf("%s: %s: %s", l.Place, text, errs)
		}
	}
	if len(tried) < 20 {
		t.Errorf("the pages have %d different command lines", len(tried))
	}
	if code, _, errs := run(ended, "detect", "--v", "asynq"); code != app.ExitUsage {
		t.Errorf("a flag that does not exist: exit %d, %s", code, errs)
	}
}

func TestTheVersionIsPrinted(t *testing.T) {
	code, out, errs := run(t.Context(), "version")
	if code != 0 || errs != "" || !strings.HasPrefix(out, "curfew-bench ") || !strings.Contains(out, "\nfunctions build ") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

func TestWordsAreCompleted(t *testing.T) {
	for _, row := range []struct{ words, want string }{
		{"de", "detect"}, {"detect --th", "--threshold"}, {"counts -o ", "table json benchstat"}, {"ho", ""},
	} {
		_, out, errs := run(t.Context(), append([]string{"__complete", "--"}, strings.Split(row.words, " ")...)...)
		var got []string
		for line := range strings.Lines(out) {
			word, _, _ := strings.Cut(line, "\t")
			got = append(got, word)
		}
		if strings.Join(got, " ") != row.want || errs != "" {
			t.Errorf("%s: %q, %q, want %s", row.words, got, errs, row.want)
		}
	}
	if _, script, _ := run(t.Context(), "completion", "zsh"); !strings.HasPrefix(script, "#compdef curfew-bench\n_curfew-bench() {\n") || !strings.Contains(script, "$(curfew-bench __complete -- ") {
		t.Errorf("the script of zsh is\n%s", script)
	}
}

func TestBenchWritesJSON(t *testing.T) {
	t.Parallel()
	reportOf(t, "memory --tasks 1000 --runs 1", "memory a pending task")
}

func TestBenchWritesEachRunForBenchstat(t *testing.T) {
	t.Parallel()
	code, out, errs := run(t.Context(), "memory", "--tasks", "1000", "--runs", "2", "-o", "benchstat")
	if code != 0 || errs != "" || !strings.HasPrefix(out, "redis: ") || strings.Count(out, "\nBenchmarkMemory/memory_a_pending_task 1 ") != 2 {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// Some benchmarks measure processes of the program curfew. The first one builds it, as under go run.
func TestTheProgramCurfewIsMeasured(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	beside := filepath.Join(folder, withSuffix("curfew"))
	path, remove, err := buildCurfew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, beside); err != nil {
		t.Fatal(err)
	}
	remove()
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Errorf("%s is still there", filepath.Dir(path))
	}
	if found, err := besideOf(filepath.Join(folder, name)); found != beside || err != nil {
		t.Errorf("the program beside is %q, %v, want %q", found, err, beside)
	}
	if found, err := besideOf(filepath.Join(t.TempDir(), name)); found != "" || err != nil {
		t.Errorf("a folder without a program has %q, %v", found, err)
	}
	for _, row := range []struct {
		args    string
		figures []string
	}{
		// It fails if a filter does not find its tasks.
		{"http --tasks 100 --waiting 20 --runs 1", []string{"enqueue over HTTP", "a result over HTTP p99"}},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			reportOf(t, row.args+" --curfew "+beside, row.figures...)
		})
	}
}

// reportOf runs a benchmark, and fails if one of these figures is not positive.
func reportOf(t *testing.T, args string, figures ...string) {
	t.Helper()
	code, out, errs := run(t.Context(), append(strings.Fields(args), "-o", "json")...)
	var report bench.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil {
		t.Errorf("exit %d, %v, %s%s", code, err, out, errs)
	}
	for _, figure := range figures {
		if report.Value(figure) <= 0 {
			t.Errorf("%s is %v in %s", figure, report.Value(figure), out)
		}
	}
}

func TestAnInterruptedBenchmarkSaysSo(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, args := range []string{"memory", "micro", "http"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(ctx, args)
			if want := "curfew-bench: interrupted: a measurement that is not complete has no figures\n"; code != app.ExitInterrupted || out != "" || errs != want {
				t.Errorf("exit %d, stdout %q, stderr %q; want exit %d and %q", code, out, errs, app.ExitInterrupted, want)
			}
		})
	}
}
