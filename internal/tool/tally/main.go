// Command tally runs go test and counts the tests: `go run ./internal/tool/tally -- -timeout 5m ./...`
//
// It prints what go test prints without -v: one line for each package, and failures in full. Then it names the ten
// slowest tests and each skipped test with its reason. The last line is "N passed, N failed", and ", N skipped" if tests
// were skipped. Tests that redistest.NoRace skips under the race detector are counted separately and not listed. A run
// that tested too little fails too: -minimum names a file with the least counts of tests, stories and model sequences
// (count.go).
//
// Packages start in the order in which they are named, so name the longest first. Three times as many as there are processors
// run at once, as tests also wait; -p of go test changes that. -last names packages that measure time. They run one after
// the other, when all others have ended.
//
// With -stall it stops the test binaries and their Redis servers at random, as a busy machine does (stall_linux.go).
//
// The tests get a folder of their own for temporary files, and CURFEW_SEED for their random choices. When tally ends, also
// by Ctrl-C or with its terminal, it ends the processes that the tests have left and removes the folder (orphans_linux.go).
//
// tally runs go test itself, because the exit code of go test would be lost in a pipe.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/curfew-dev/curfew/internal/processgroup"
)

func main() {
	var r run
	minimum := flag.String("minimum", "", "a `file` of lines \"name value\" with the least counts that must be tested")
	flag.BoolVar(&r.stall, "stall", false, "stop the test binaries and their Redis servers at random, for up to 1.5 s")
	last := flag.String("last", "", "the `packages` to run alone, after the others, as go list takes them")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: tally [-minimum file] [-last packages] [-stall] -- arguments of go test")
		flag.PrintDefaults()
	}
	flag.Parse()
	r.last, r.args = strings.Fields(*last), flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	passed, err := r.run(ctx, *minimum)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "tally: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(2)
	case !passed:
		os.Exit(1)
	}
}

// run is one run of the tests.
type run struct {
	last, args []string // packages, and the arguments of go test with the names of all packages
	stall      bool
}

// run reports whether all tests passed. It returns an error if the tests could not be run.
func (r *run) run(ctx context.Context, minimum string) (passed bool, err error) {
	least := map[string]int{}
	if minimum != "" {
		text, err := os.ReadFile(minimum)
		if err != nil {
			return false, err
		}
		if least, err = parseMinimum(string(text)); err != nil {
			return false, fmt.Errorf("%s: %w", minimum, err)
		}
	}
	home, err := os.MkdirTemp("", "curfew-tests")
	if err != nil {
		return false, err
	}
	adoptOrphans()
	defer func() {
		killOrphans()
		err = errors.Join(err, os.RemoveAll(home))
	}()
	seed := os.Getenv("CURFEW_SEED")
	if seed == "" {
		seed = strconv.FormatInt(time.Now().UnixMilli()%1_000_000_000, 10)
	}
	os.Setenv("CURFEW_SEED", seed)
	os.Setenv("TMPDIR", home)

	stages := [][]string{r.args}
	if len(r.last) > 0 {
		if stages, err = split(r.last, r.args); err != nil {
			return false, err
		}
	}
	c := newCounter(os.Stdout)
	var ended error
	for _, args := range stages {
		failed, err := test(ctx, c, args, r.stall)
		if err != nil || ctx.Err() != nil {
			return false, err
		}
		ended = errors.Join(ended, failed)
	}
	fmt.Printf("CURFEW_SEED=%s plays the same random choices again\n", seed)
	return c.summarize(least, ended), nil
}

// split divides the arguments of go test into those of the packages that run last, and those of the others before them.
// Each package runs once, in the order in which it is named.
func split(last, args []string) (stages [][]string, err error) {
	var flags, patterns []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "./") {
			patterns = append(patterns, arg)
		} else {
			flags = append(flags, arg)
		}
	}
	others, err := list(patterns)
	if err != nil {
		return nil, err
	}
	if last, err = list(last); err != nil {
		return nil, err
	}
	for _, p := range last {
		if !slices.Contains(others, p) {
			return nil, fmt.Errorf("-last names %s, which is not one of the packages %s", p, strings.Join(patterns, " "))
		}
	}
	others = slices.DeleteFunc(others, func(p string) bool { return slices.Contains(last, p) })
	if len(others) > 0 {
		stages = append(stages, slices.Concat(flags, others))
	}
	return append(stages, slices.Concat(flags, []string{"-p", "1"}, last)), nil
}

// list returns the packages that match the patterns.
func list(patterns []string) ([]string, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-f", "{{.ImportPath}}"}, patterns...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	var out strings.Builder
	cmd.Stdout = &out
	err := starting(func() (pid int, err error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, complaint.String())
	}
	return strings.Fields(out.String()), nil
}

// patience is how long tests may take to end after an interruption.
const patience = 5 * time.Second

// test runs go test in a process group of its own, and stops it if ctx ends. ended is its error.
func test(ctx context.Context, c *counter, args []string, stalls bool) (ended, err error) {
	runtime.LockOSThread() // processgroup ties the process to this thread
	defer runtime.UnlockOSThread()
	atOnce := strconv.Itoa(3 * runtime.NumCPU())
	test := exec.Command("go", append([]string{"test", "-json", "-p", atOnce}, args...)...)
	test.Stderr = os.Stderr
	events, err := test.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var group *processgroup.Group
	if err := starting(func() (pid int, err error) {
		if group, err = processgroup.Start(test); err != nil {
			return 0, err
		}
		return group.ID(), nil
	}); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() {
		group.Stop()
		time.AfterFunc(patience, group.Kill)
	})()
	if stalls {
		over, done := context.WithCancel(ctx)
		stalled := make(chan bool)
		go func() { stall(over, group.ID()); close(stalled) }()
		defer func() { done(); <-stalled }()
	}
	if err := c.read(events); err != nil {
		group.Kill()
		test.Wait()
		return nil, err
	}
	return test.Wait(), nil
}
