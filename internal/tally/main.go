// Command tally runs go test and counts the tests: `go run ./internal/tally -- -timeout 5m ./...`
//
// It prints what go test prints without -v: one line for each package, and failures in full. The last line is
// "N passed, N failed". If tests were skipped, ", N skipped" follows, and each of them is listed. Tests that
// redistest.NoRace skips under the race detector are counted separately and not listed. A run that tested
// too little fails too: -minimum names a file with the least counts of tests, stories and model sequences
// (count.go).
//
// -beside names packages whose tests wait more than they compute. They run one after the other in a second
// go test, at the same time as the other packages, so that the processor has work while they wait.
// Packages start in the order in which they are named, so name the longest first. The counts include both runs.
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
	"slices"
	"strings"
	"sync"
)

func main() {
	minimum := flag.String("minimum", "", "a `file` of lines \"name value\" with the least counts that must be tested")
	beside := flag.String("beside", "", "the `packages` to run beside the others, as go list takes them")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: tally [-minimum file] [-beside packages] -- arguments of go test")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*minimum, strings.Fields(*beside), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(2)
	}
}

// run exits the process with 1 if a test failed. It returns an error if the tests could not be run.
func run(minimum string, beside, args []string) error {
	least := map[string]int{}
	if minimum != "" {
		text, err := os.ReadFile(minimum)
		if err != nil {
			return err
		}
		if least, err = parseMinimum(string(text)); err != nil {
			return fmt.Errorf("%s: %w", minimum, err)
		}
	}

	lanes := [][]string{args}
	if len(beside) > 0 {
		var err error
		if lanes, err = split(beside, args); err != nil {
			return err
		}
	}
	c := newCounter(os.Stdout)
	ended, err := test(c, lanes)
	if err != nil {
		return err
	}
	if !c.summarize(least, ended) {
		os.Exit(1)
	}
	return nil
}

// split divides the arguments of go test into two lanes: the packages that run beside the others, and the
// others. Each package runs once, in the order in which it is named.
func split(beside, args []string) (lanes [][]string, err error) {
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
	waiting, err := list(beside)
	if err != nil {
		return nil, err
	}
	for _, p := range waiting {
		if !slices.Contains(all, p) {
			return nil, fmt.Errorf("-beside names %s, which is not one of the packages %s", p, strings.Join(patterns, " "))
		}
	}
	others := slices.DeleteFunc(all, func(p string) bool { return slices.Contains(waiting, p) })
	if len(others) > 0 {
		lanes = append(lanes, slices.Concat(flags, others))
	}
	return append(lanes, slices.Concat(flags, []string{"-p", "1"}, waiting)), nil
}

// list returns the packages that match the patterns. It also compiles them, as otherwise both lanes would do
// that. It ignores compile errors, which go test reports.
func list(patterns []string) ([]string, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-export", "-f", "{{.ImportPath}}"}, patterns...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, complaint.String())
	}
	return strings.Fields(string(out)), nil
}

// test runs a go test for each lane, all at the same time. ended joins their errors.
func test(c *counter, lanes [][]string) (ended, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // stops the other lanes if one cannot be read
	var tests []*exec.Cmd
	var reads sync.WaitGroup
	wrong := make([]error, len(lanes))
	for i, args := range lanes {
		test := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
		test.Stderr = os.Stderr
		events, err := test.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := test.Start(); err != nil {
			return nil, err
		}
		tests = append(tests, test)
		reads.Go(func() {
			if wrong[i] = c.read(events); wrong[i] != nil {
				cancel()
			}
		})
	}
	reads.Wait()
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	for _, test := range tests {
		ended = errors.Join(ended, test.Wait())
	}
	return ended, nil
}
