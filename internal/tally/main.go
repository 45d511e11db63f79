// Command tally runs go test and counts the tests: `go run ./internal/tally -- -timeout 5m ./...`
//
// It prints what go test prints without -v: one line for each package, and failures in full. Then it names the ten
// slowest tests and each skipped test with its reason. The last line is "N passed, N failed", and ", N skipped" if tests
// were skipped. Tests that redistest.NoRace skips under the race detector are counted separately and not listed. A run
// that tested too little fails too: -minimum names a file with the least counts of tests, stories and model sequences
// (count.go).
//
// -beside names packages whose tests wait more than they compute. They run one after the other in a second
// go test, at the same time as the other packages, so that the processor has work while they wait. -last names packages
// that measure time. They run alone, when all others have ended. Packages start in the order in which they are named, so
// name the longest first.
//
// The tests get a folder of their own for temporary files, and CURFEW_SEED for their random choices. When tally ends, also
// by Ctrl-C, it ends the processes that the tests have left and removes the folder (leftovers.go).
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
	"sync"
	"syscall"
	"time"

	"github.com/curfew-dev/curfew/internal/processgroup"
)

func main() {
	var r run
	minimum := flag.String("minimum", "", "a `file` of lines \"name value\" with the least counts that must be tested")
	beside := flag.String("beside", "", "the `packages` to run beside the others, as go list takes them")
	last := flag.String("last", "", "the `packages` to run alone, after the others")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: tally [-minimum file] [-beside packages] [-last packages] -- arguments of go test")
		flag.PrintDefaults()
	}
	flag.Parse()
	r.beside, r.last, r.args = strings.Fields(*beside), strings.Fields(*last), flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
	beside, last, args []string // packages, and the arguments of go test with the names of all packages
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

	stages := [][][]string{{r.args}} // lanes that run at the same time, one stage after the other
	if len(r.beside)+len(r.last) > 0 {
		if stages, err = split(r.beside, r.last, r.args); err != nil {
			return false, err
		}
	}
	c := newCounter(os.Stdout)
	var ended error
	for _, lanes := range stages {
		failed, err := test(ctx, c, lanes)
		if err != nil || ctx.Err() != nil {
			return false, err
		}
		ended = errors.Join(ended, failed)
	}
	fmt.Printf("CURFEW_SEED=%s plays the same random choices again\n", seed)
	return c.summarize(least, ended), nil
}

// split divides the arguments of go test into stages. The first has two lanes: the packages that run beside the others,
// and the others. The second has the packages that run last. Each package runs once, in the order in which it is named.
func split(beside, last, args []string) (stages [][][]string, err error) {
	var flags, patterns []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "./") {
			patterns = append(patterns, arg)
		} else {
			flags = append(flags, arg)
		}
	}
	all, err := list(patterns)
	if err != nil {
		return nil, err
	}
	take := func(flag string, names []string) (taken []string, err error) {
		if len(names) == 0 {
			return nil, nil
		}
		if taken, err = list(names); err != nil {
			return nil, err
		}
		for _, p := range taken {
			if !slices.Contains(all, p) {
				return nil, fmt.Errorf("%s names %s, which is not one of the packages %s", flag, p, strings.Join(patterns, " "))
			}
		}
		all = slices.DeleteFunc(all, func(p string) bool { return slices.Contains(taken, p) })
		return taken, nil
	}
	alone, err := take("-last", last)
	if err != nil {
		return nil, err
	}
	waiting, err := take("-beside", beside)
	if err != nil {
		return nil, err
	}
	var lanes [][]string
	if len(all) > 0 {
		lanes = append(lanes, slices.Concat(flags, all))
	}
	if len(waiting) > 0 {
		lanes = append(lanes, slices.Concat(flags, []string{"-p", "1"}, waiting))
	}
	if len(lanes) > 0 {
		stages = append(stages, lanes)
	}
	if len(alone) > 0 {
		stages = append(stages, [][]string{slices.Concat(flags, []string{"-p", "1"}, alone)})
	}
	return stages, nil
}

// list returns the packages that match the patterns. It also compiles them, as otherwise both lanes would do
// that. It ignores compile errors, which go test reports.
func list(patterns []string) ([]string, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-export", "-f", "{{.ImportPath}}"}, patterns...)...)
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

// test runs a go test for each lane, all at the same time. ended joins their errors. If ctx ends, it stops them.
func test(ctx context.Context, c *counter, lanes [][]string) (ended, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // stops the other lanes if one cannot be read
	failed, wrong := make([]error, len(lanes)), make([]error, len(lanes))
	var tests sync.WaitGroup
	for i, args := range lanes {
		tests.Go(func() {
			if failed[i], wrong[i] = lane(ctx, c, args); wrong[i] != nil {
				cancel()
			}
		})
	}
	tests.Wait()
	return errors.Join(failed...), errors.Join(wrong...)
}

// patience is how long tests may take to end after an interruption.
const patience = 5 * time.Second

// lane runs one go test in a process group of its own. ended is its error.
func lane(ctx context.Context, c *counter, args []string) (ended, err error) {
	runtime.LockOSThread() // processgroup ties the process to this thread
	defer runtime.UnlockOSThread()
	test := exec.Command("go", append([]string{"test", "-json"}, args...)...)
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
	if err := c.read(events); err != nil {
		group.Kill()
		test.Wait()
		return nil, err
	}
	return test.Wait(), nil
}
