package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The events are those of go test 1.26, times and elapsed left out.
const (
	passing = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestOne"}
{"Action":"output","Package":"m/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"m/a","Test":"TestOne","Output":"    a_test.go:5: sequences: 40\n"}
{"Action":"output","Package":"m/a","Test":"TestOne","Output":"--- PASS: TestOne (0.00s)\n"}
{"Action":"pass","Package":"m/a","Test":"TestOne"}
{"Action":"run","Package":"m/a","Test":"TestStories"}
{"Action":"run","Package":"m/a","Test":"TestStories/redis"}
{"Action":"run","Package":"m/a","Test":"TestStories/redis/late_is_late"}
{"Action":"pass","Package":"m/a","Test":"TestStories/redis/late_is_late"}
{"Action":"pass","Package":"m/a","Test":"TestStories/redis"}
{"Action":"run","Package":"m/a","Test":"TestStories/embedded"}
{"Action":"run","Package":"m/a","Test":"TestStories/embedded/late_is_late"}
{"Action":"pass","Package":"m/a","Test":"TestStories/embedded/late_is_late"}
{"Action":"pass","Package":"m/a","Test":"TestStories/embedded"}
{"Action":"pass","Package":"m/a","Test":"TestStories"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t1.20s\n"}
{"Action":"pass","Package":"m/a"}
{"Action":"output","Package":"m/b","Output":"?   \tm/b\t[no test files]\n"}
{"Action":"skip","Package":"m/b"}
`
	failing = `{"Action":"run","Package":"m/c","Test":"TestGood"}
{"Action":"output","Package":"m/c","Test":"TestGood","Output":"    c_test.go:3: of no interest\n"}
{"Action":"pass","Package":"m/c","Test":"TestGood"}
{"Action":"run","Package":"m/c","Test":"TestBad"}
{"Action":"output","Package":"m/c","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"run","Package":"m/c","Test":"TestBad/x"}
{"Action":"output","Package":"m/c","Test":"TestBad/x","Output":"=== RUN   TestBad/x\n"}
{"Action":"output","Package":"m/c","Test":"TestBad/x","Output":"    c_test.go:9: got 1, want 2\n"}
{"Action":"output","Package":"m/c","Test":"TestBad/x","Output":"--- FAIL: TestBad/x (0.00s)\n"}
{"Action":"fail","Package":"m/c","Test":"TestBad/x"}
{"Action":"output","Package":"m/c","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"fail","Package":"m/c","Test":"TestBad"}
{"Action":"output","Package":"m/c","Output":"FAIL\n"}
{"Action":"output","Package":"m/c","Output":"FAIL\tm/c\t0.01s\n"}
{"Action":"fail","Package":"m/c"}
`
	crashing = `{"Action":"run","Package":"m/d","Test":"TestBoom"}
{"Action":"output","Package":"m/d","Test":"TestBoom","Output":"panic: boom\n"}
{"Action":"output","Package":"m/d","Output":"FAIL\tm/d\t0.01s\n"}
{"Action":"fail","Package":"m/d"}
`
	broken = `{"ImportPath":"m/e","Action":"build-output","Output":"e.go:3: undefined: x\n"}
{"ImportPath":"m/e","Action":"build-fail"}
{"Action":"output","Package":"m/e","Output":"FAIL\tm/e [build failed]\n"}
{"Action":"fail","Package":"m/e","FailedBuild":"m/e"}
`
	skipping = `{"Action":"run","Package":"m/f","Test":"TestSkip"}
{"Action":"output","Package":"m/f","Test":"TestSkip","Output":"    f_test.go:7: no server: start one\n"}
{"Action":"output","Package":"m/f","Test":"TestSkip","Output":"--- SKIP: TestSkip (0.00s)\n"}
{"Action":"skip","Package":"m/f","Test":"TestSkip"}
{"Action":"run","Package":"m/f","Test":"TestRun"}
{"Action":"pass","Package":"m/f","Test":"TestRun"}
{"Action":"output","Package":"m/f","Output":"ok  \tm/f\t0.10s\n"}
{"Action":"pass","Package":"m/f"}
`
	unraced = `{"Action":"run","Package":"m/f","Test":"TestAlone"}
{"Action":"output","Package":"m/f","Test":"TestAlone","Output":"    f_test.go:7: not under the race detector: one call at a time\n"}
{"Action":"skip","Package":"m/f","Test":"TestAlone"}
` + skipping
	twice = `{"Action":"run","Package":"m/i","Test":"TestNowAndThen"}
{"Action":"output","Package":"m/i","Test":"TestNowAndThen","Output":"    i_test.go:2: got 1, want 2\n"}
{"Action":"fail","Package":"m/i","Test":"TestNowAndThen"}
{"Action":"run","Package":"m/i","Test":"TestNowAndThen"}
{"Action":"pass","Package":"m/i","Test":"TestNowAndThen"}
{"Action":"output","Package":"m/i","Output":"FAIL\tm/i\t0.01s\n"}
{"Action":"fail","Package":"m/i"}
`
	timed = `{"Action":"run","Package":"m/h","Test":"TestSlow"}
{"Action":"pass","Package":"m/h","Test":"TestSlow","Elapsed":1}
{"Action":"run","Package":"m/h","Test":"TestQuick"}
{"Action":"pass","Package":"m/h","Test":"TestQuick","Elapsed":0.9}
{"Action":"run","Package":"m/h","Test":"TestSlower"}
{"Action":"pass","Package":"m/h","Test":"TestSlower","Elapsed":7.5}
{"Action":"output","Package":"m/h","Output":"ok  \tm/h\t9.00s\n"}
{"Action":"pass","Package":"m/h"}
`
	unfinished = `{"Action":"run","Package":"m/g","Test":"TestHang"}
{"Action":"output","Package":"m/g","Test":"TestHang","Output":"still here\n"}
`
)

func TestASummary(t *testing.T) {
	exit1 := errors.New("exit status 1")
	for _, test := range []struct {
		claim, events string
		least         map[string]int
		ended         error
		well          bool
		out           string
	}{
		{"innermost tests count, and a story once", passing, map[string]int{"tests": 3, "stories": 1, "sequences": 40}, nil, true,
			"ok  \tm/a\t1.20s\n?   \tm/b\t[no test files]\n1 stories, 40 model sequences\n3 passed, 0 failed\n"},
		{"too few tests are a failure", passing, map[string]int{"tests": 4}, nil, false,
			"ok  \tm/a\t1.20s\n?   \tm/b\t[no test files]\ntoo little was tested: 3 tests, and the minimum is 4 (.ci/minimum)\n1 stories, 40 model sequences\n3 passed, 0 failed\n"},
		{"too few stories are a failure", passing, map[string]int{"stories": 2}, nil, false,
			"ok  \tm/a\t1.20s\n?   \tm/b\t[no test files]\ntoo little was tested: 1 stories, and the minimum is 2 (.ci/minimum)\n1 stories, 40 model sequences\n3 passed, 0 failed\n"},
		{"too few sequences are a failure", passing, map[string]int{"sequences": 41}, nil, false,
			"ok  \tm/a\t1.20s\n?   \tm/b\t[no test files]\ntoo little was tested: 40 sequences, and the minimum is 41 (.ci/minimum)\n1 stories, 40 model sequences\n3 passed, 0 failed\n"},
		{"a failure is printed in full, and counted once", failing, nil, exit1, false,
			"    c_test.go:9: got 1, want 2\n--- FAIL: TestBad/x (0.00s)\n--- FAIL: TestBad (0.00s)\nFAIL\nFAIL\tm/c\t0.01s\n0 stories, 0 model sequences\n1 passed, 1 failed\n"},
		{"a failure is printed, also if the test passes when it is repeated", twice, nil, exit1, false,
			"    i_test.go:2: got 1, want 2\nFAIL\tm/i\t0.01s\n0 stories, 0 model sequences\n1 passed, 1 failed\n"},
		{"a test that did not end has failed", crashing, nil, exit1, false,
			"panic: boom\nFAIL\tm/d\t0.01s\n0 stories, 0 model sequences\n0 passed, 1 failed\n"},
		{"a package that does not compile has failed", broken, nil, exit1, false,
			"e.go:3: undefined: x\nFAIL\tm/e [build failed]\n0 stories, 0 model sequences\n0 passed, 1 failed\n"},
		{"a skipped test is listed", skipping, nil, nil, true,
			"ok  \tm/f\t0.10s\nskipped: f.TestSkip: no server: start one\n0 stories, 0 model sequences\n1 passed, 0 failed, 1 skipped\n"},
		{"the slowest tests are named, the slowest first", timed, nil, nil, true,
			"ok  \tm/h\t9.00s\nslow:   7.5 s  h.TestSlower\nslow:   1.0 s  h.TestSlow\n0 stories, 0 model sequences\n3 passed, 0 failed\n"},
		{"a test that has nothing for the race detector is counted", unraced, nil, nil, true,
			"ok  \tm/f\t0.10s\nskipped: f.TestSkip: no server: start one\n0 stories, 0 model sequences\n1 passed, 0 failed, 1 skipped, 1 not under the race detector\n"},
		{"a package that did not end has failed", unfinished, nil, exit1, false,
			"still here\nFAIL\tm/g: the package did not end\n0 stories, 0 model sequences\n0 passed, 1 failed\n"},
		{"a run without tests is a failure", "", nil, nil, false,
			"nothing was tested\n0 stories, 0 model sequences\n0 passed, 0 failed\n"},
		{"the exit code of go test counts", skipping, nil, exit1, false,
			"ok  \tm/f\t0.10s\ngo test: exit status 1\nskipped: f.TestSkip: no server: start one\n0 stories, 0 model sequences\n1 passed, 1 failed, 1 skipped\n"},
		{"a line that is not an event is printed", "go: no such module\n" + skipping, nil, nil, true,
			"go: no such module\nok  \tm/f\t0.10s\nskipped: f.TestSkip: no server: start one\n0 stories, 0 model sequences\n1 passed, 0 failed, 1 skipped\n"},
	} {
		var out strings.Builder
		c := newCounter(&out)
		if err := c.read(strings.NewReader(test.events)); err != nil {
			t.Fatal(err)
		}
		well := c.summarize(test.least, test.ended)
		if well != test.well || out.String() != test.out {
			t.Errorf("%s: well %v, want %v; it prints\n%s\nwant\n%s", test.claim, well, test.well, out.String(), test.out)
		}
	}
}

func TestAMinimumIsRead(t *testing.T) {
	got, err := parseMinimum("# the least\ntests 20\n\nstories 3 # each once\nsequences 100")
	if want := map[string]int{"tests": 20, "stories": 3, "sequences": 100}; err != nil || !maps.Equal(got, want) {
		t.Errorf("parseMinimum = %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"tests", "tests x", "teste 1", "tests 1 2"} {
		if got, err := parseMinimum(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("parseMinimum(%q) = %v, %v, want an error that quotes it", bad, got, err)
		}
	}
}

// tally runs on real modules of one test each, so that a change of the output of go test is noticed.
func TestGoTestIsUnderstood(t *testing.T) {
	t.Parallel()
	tally := built(t)
	for _, test := range []struct{ claim, body, last string }{
		{"a test that passes", `t.Log("sequences: 7")`, "0 stories, 7 model sequences\n1 passed, 0 failed\n"},
		{"a test that fails", `t.Error("no")`, "1 failed\n"},
		{"a test that panics", `panic("no")`, "1 failed\n"},
		{"a test that exits", `os.Exit(0)`, "1 failed\n"},
		{"a test that does not compile", `x`, "0 passed, 1 failed\n"},
		{"a test that hangs", `select {}`, "0 passed, 1 failed\n"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			dir := module(t, map[string]string{"m": test.body})
			cmd := exec.Command(tally, "--", "-timeout", "3s", "./m")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if !strings.HasSuffix(string(out), test.last) {
				t.Errorf("the output is\n%s\nwant %s at its end", out, test.last)
			}
			if good := strings.Contains(test.last, " 0 failed"); good != (err == nil) {
				t.Errorf("tally ended with %v\n%s", err, out)
			}
		})
	}
}

// The packages of -last run when all others have ended. Both are counted, a failure of either is a failure, and each
// package runs once.
func TestPackagesRunLast(t *testing.T) {
	t.Parallel()
	tally := built(t)
	dir := module(t, map[string]string{
		"a":   `time.Sleep(time.Second); t.Log("sequences: 7"); os.WriteFile(os.Getenv("DONE"), nil, 0o600)`,
		"b":   `if _, err := os.Stat(os.Getenv("DONE")); err != nil { t.Error("package a has not ended: ", err) }; t.Log("sequences: 5")`,
		"c":   `t.Log("sequences: 5")`,
		"bad": `t.Error("no")`,
	})
	for _, test := range []struct {
		claim, last, packages, want string
		good                        bool
	}{
		{"both are counted", "./b", "./b ./a", "0 stories, 12 model sequences\n2 passed, 0 failed\n", true},
		{"all packages can be last", "./c ./a", "./a ./c", "0 stories, 12 model sequences\n2 passed, 0 failed\n", true},
		{"a package that is named twice runs once", "./b", "./a ./b ./a", "0 stories, 12 model sequences\n2 passed, 0 failed\n", true},
		{"a failure at the end counts", "./bad", "./a ./bad", "1 passed, 1 failed\n", false},
		{"a failure of the others counts", "./a", "./a ./bad", "1 passed, 1 failed\n", false},
		{"-last refuses a package that is not named", "./b", "./a", "tally: -last names m/b, which is not one of the packages ./a\n", false},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"-last", test.last, "--", "-count", "1", "-timeout", "60s"}, strings.Fields(test.packages)...)
			cmd := exec.Command(tally, args...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "DONE="+filepath.Join(t.TempDir(), "done"))
			out, err := cmd.CombinedOutput()
			if !strings.HasSuffix(string(out), test.want) || test.good != (err == nil) {
				t.Errorf("tally ended with %v; the output is\n%s\nwant %s at its end", err, out, test.want)
			}
		})
	}
}

// built returns the program, which is built once.
func built(t *testing.T) string {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

var builtIn string

var build = sync.OnceValues(func() (program string, err error) {
	if builtIn, err = os.MkdirTemp("", "tally"); err != nil {
		return "", err
	}
	program = filepath.Join(builtIn, "tally")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
})

func TestMain(m *testing.M) {
	m.Run()
	os.RemoveAll(builtIn)
}

// module writes a module whose packages have one test each, with these bodies.
func module(t *testing.T, bodies map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module m\n\ngo 1.26\n")
	for name, body := range bodies {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "m_test.go"), "package "+name+`

import ("fmt"; "os"; "os/exec"; "path/filepath"; "syscall"; "testing"; "time")

var ( _ = fmt.Sprint; _ = os.Exit; _ = exec.Command; _ = filepath.Join; _ = syscall.Kill; _ = time.Now )

func TestIt(t *testing.T) {
	`+body+`
}
`)
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
