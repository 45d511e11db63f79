// Command tally runs go test and counts: `go run ./internal/tally -- -timeout 5m ./...`
//
// It prints what go test prints without -v: a line a package, and failures in full.
// The last line is "N passed, N failed", with ", N skipped" behind it if there are
// any, which are told one by one. Those that say themselves that they have nothing for the
// race detector (redistest.NoRace) are counted apart, and not told. A run that tested less than it should is a failure
// too: -minimum names a file with the least counts of tests, stories and model
// sequences (count.go).
//
// Packages whose tests wait more than they compute are named with -beside. They run in
// a second go test, one after the other, at the same time as the other packages, so that
// the processor has work while they wait. Packages start in the order in which they are
// named, so the longest comes first. The counts are of both.
//
// It runs go test itself, so that there is no pipe in which an exit code can get lost.
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
	minimum := flag.String("minimum", "", "a `file` of lines \"name value\": the least that must have been tested")
	beside := flag.String("beside", "", "the `packages` that run beside the others, as go list takes them")
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

// run exits the process if what was tested failed; an error means that it could not tell.
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

// split makes two lanes of the arguments of go test: the packages that run beside the
// others, and the others. Each package runs once, in the order in which it is named.
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
			return nil, fmt.Errorf("-beside names %s, which is not among %s", p, strings.Join(patterns, " "))
		}
	}
	others := slices.DeleteFunc(all, func(p string) bool { return slices.Contains(waiting, p) })
	if len(others) > 0 {
		lanes = append(lanes, slices.Concat(flags, others))
	}
	return append(lanes, slices.Concat(flags, []string{"-p", "1"}, waiting)), nil
}

// list returns the packages that patterns name. It compiles them first, or both lanes
// would; what does not compile is left to go test, which says why.
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

// test runs a go test for each lane, all at once. ended is how they ended.
func test(c *counter, lanes [][]string) (ended, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // a lane that runs when another cannot be read
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
