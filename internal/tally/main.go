// Command tally runs go test and counts: `go run ./internal/tally -- -timeout 5m ./...`
//
// It prints what go test prints without -v: a line a package, and failures in full.
// The last line is "N passed, N failed", with ", N skipped" behind it if there are
// any, which are told one by one. A run that tested less than it should is a failure
// too: -minimum names a file with the least counts of tests, stories and model
// sequences (count.go).
//
// It runs go test itself, so that there is no pipe in which an exit code can get lost.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	minimum := flag.String("minimum", "", "a `file` of lines \"name value\": the least that must have been tested")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: tally [-minimum file] -- arguments of go test")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*minimum, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(2)
	}
}

// run exits the process if what was tested failed; an error means that it could not tell.
func run(minimum string, args []string) error {
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

	test := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	test.Stderr = os.Stderr
	events, err := test.StdoutPipe()
	if err != nil {
		return err
	}
	if err := test.Start(); err != nil {
		return err
	}
	c := newCounter(os.Stdout)
	if err := c.read(events); err != nil {
		return err
	}
	ended := test.Wait()

	if !c.summarize(least, ended) {
		os.Exit(1)
	}
	return nil
}
