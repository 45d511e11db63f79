package scripts_test

import (
	"os/exec"
	"strings"
	"testing"
)

func TestMediansOfBenchmarks(t *testing.T) {
	run := func(lines ...string) (string, error) {
		cmd := exec.Command("./medians")
		cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
		out, err := cmd.CombinedOutput()
		return strings.Join(strings.Fields(string(out)), " "), err
	}
	got, err := run("goos: linux", "BenchmarkX/a-2 10 5 ns/op 30 B/op", "BenchmarkY-2 10 7 ns/op", "BenchmarkX/a-2 10 100 ns/op 10 B/op",
		"BenchmarkX/a-2 10 12 ns/op 20 B/op", "BenchmarkY-2 10 8.5 ns/op", "ok package 3s")
	if want := "BenchmarkX/a-2 ns/op 12 (5 to 100, 3 runs) BenchmarkX/a-2 B/op 20 (10 to 30, 3 runs) BenchmarkY-2 ns/op 7.75 (7 to 8.5, 2 runs)"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if got, err := run("FAIL"); err == nil || got != "medians: no line of a benchmark" {
		t.Errorf("without a benchmark: %q, %v", got, err)
	}
}
