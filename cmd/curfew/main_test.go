package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/bench"
)

func curfew(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(context.Background(), append([]string{"curfew"}, args...), &out, &err)
	return code, out.String(), err.String()
}

func TestDemoEndsAHungTaskOnTime(t *testing.T) {
	code, out, errs := curfew(t, "demo", "--timeout", "300ms")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"COMPLETED", "TIMEOUT", "Task exceeded deadline", "ms after its deadline"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not say %q:\n%s", want, out)
		}
	}
}

// What is wrong is said on stderr with what to do, nothing on stdout, exit code 2.
func TestWrongUseIsASentence(t *testing.T) {
	for _, test := range []struct {
		args string
		want string
	}{
		{"bogus", `no command "bogus"`},
		{"demo now", `takes no argument, and got "now"`},
		{"demo --timeout 5", "has no unit: write 5s: see `curfew --help`"},
		{"demo --timeout -1s", "is negative"},
		{"demo --timeout 1d", "--timeout 1d must be from 10ms to 1m"},
		{"demo --timeout 0s", "--timeout 0s must be from 10ms to 1m"},
		{"demo --bogus", "bogus"},
		{"bench nothing", "throughput, detect, memory, longest, counts, micro, agents, failover or recovery"},
		{"bench memory --runs 0", "--runs 0 must be from 1"},
		{"bench memory --tasks -5", "--tasks -5 must be from 1"},
		{"bench throughput --partitions 0", "--partitions 0 must be from 1"},
		{"bench throughput --vs river", `--vs "river" must be asynq`},
		{"bench throughput --vs asynq --partitions 4", "leave one of them out"},
		{"bench throughput --vs asynq --full", "leave one of them out"},
		{"bench throughput --vs asynq --runs 0", "--runs 0 must be from 1"},
		{"bench throughput --vs asynq --servers 0", "--servers 0 must be from 1"},
		{"bench throughput --servers 2", "add --vs asynq"},
		{"bench micro --runs 0", "--runs 0 must be from 1"},
		{"bench micro --tasks 0", "--tasks 0 must be from 1"},
		{"bench micro -o csv", "table or json"},
		{"bench micro now", `got "now"`},
		{"bench memory -o xml", "table or json"},
		{"bench detect --over -1s", "is negative"},
		{"bench detect --over 1e3", "write 1000s"},
		{"bench detect --over 0s --others -1", "--others -1 must not be negative"},
		{"bench detect --over 1d --runs 0", "--runs 0 must be from 1"},
		{"bench memory extra", `got "extra"`},
		{"--bogus", "bogus"},
	} {
		code, out, errs := curfew(t, strings.Fields(test.args)...)
		if code != exitUsage || !strings.Contains(errs, test.want) || out != "" {
			t.Errorf("curfew %s: exit %d, stderr %q, stdout %q; want exit 2 and %q", test.args, code, errs, out, test.want)
		}
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	for _, args := range []string{"--help", "demo --help", "bench --help", "bench detect --help", "bench throughput --help", "bench micro --help", "bench counts --help"} {
		if code, out, errs := curfew(t, strings.Fields(args)...); code != 0 || !strings.Contains(out, "USAGE") || errs != "" {
			t.Errorf("curfew %s: exit %d, stdout %q, stderr %q", args, code, out, errs)
		}
	}
}

func TestBenchWritesJSON(t *testing.T) {
	code, out, errs := curfew(t, "bench", "memory", "--tasks", "1000", "--runs", "1", "-o", "json")
	var report bench.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || report.Value("memory a pending task") <= 0 {
		t.Errorf("exit %d, %v, %s%s", code, err, out, errs)
	}
}

func TestThroughputVersusAsynqWritesJSON(t *testing.T) {
	code, out, errs := curfew(t, "bench", "throughput", "--vs", "asynq", "--tasks", "500", "--runs", "1", "--servers", "2", "-o", "json")
	var found bench.Comparison
	if err := json.Unmarshal([]byte(out), &found); code != 0 || err != nil {
		t.Fatalf("exit %d, %v, %s%s", code, err, out, errs)
	}
	if found.Tasks != 500 || found.Runs != 1 || len(found.Rows) != 5 {
		t.Errorf("found %+v, want 5 rows of 500 tasks and 1 run", found)
	}
	for _, row := range found.Rows {
		if row.Curfew.Median <= 0 || row.Asynq.Median <= 0 || row.Floor.Median <= 0 || row.Ratio.Median <= 0 {
			t.Errorf("%+v, want figures of all three and a ratio", row)
		}
	}
}
