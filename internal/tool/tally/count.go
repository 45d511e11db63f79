package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // the package that was built
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// counter counts the results of go test.
//
//	tests      innermost tests that passed: a test with ten subtests counts ten
//	stories    tests under TestStories, each once however many servers it ran on
//	sequences  sequences of random operations, from lines "sequences: 123" that the tests log
type counter struct {
	out      io.Writer
	packages map[string]*pkg

	tests, failed int
	skipped       []string // each with its reason
	slow          []timing // top-level tests
	unraced       int      // number of tests skipped by redistest.NoRace
	stories       map[string]bool
	sequences     int
}

// timing is how long a test took.
type timing struct {
	test    string
	seconds float64
}

// pkg is a package whose tests run.
type pkg struct {
	lines   []line
	ended   map[string]string // pass, fail or skip by test; "" while it runs
	parents map[string]bool   // tests that have subtests
	failing map[string]bool   // tests with a failed subtest
	unraced map[string]bool   // tests that redistest.NoRace skips
	reason  map[string]string // the last line that a test logged
	over    bool
}

// line is a line that a test printed, or the package if test is "".
type line struct{ test, text string }

func newCounter(out io.Writer) *counter {
	return &counter{out: out, packages: map[string]*pkg{}, stories: map[string]bool{}}
}

// read counts the events of a go test. Lines that are not events are printed, because they explain why a build or a test failed.
func (c *counter) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		text, err := lines.ReadBytes('\n')
		c.take(text)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take handles one line of output of go test, which may be empty.
func (c *counter) take(text []byte) {
	var e event
	if json.Unmarshal(text, &e) == nil && e.Action != "" {
		c.add(e)
	} else {
		c.out.Write(text)
	}
}

func (c *counter) add(e event) {
	if e.Action == "build-output" {
		io.WriteString(c.out, e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := c.packages[e.Package]
	if p == nil {
		p = &pkg{ended: map[string]string{}, parents: map[string]bool{}, failing: map[string]bool{}, unraced: map[string]bool{}, reason: map[string]string{}}
		c.packages[e.Package] = p
	}
	switch e.Action {
	case "run":
		if p.ended[e.Test] != "fail" { // with -count a test runs more than once
			p.ended[e.Test] = ""
		}
		if parent, _, ok := cutLast(e.Test); ok {
			p.parents[parent] = true
		}
	case "output":
		p.lines = append(p.lines, line{e.Test, e.Output})
		if found := logged.FindStringSubmatch(e.Output); found != nil {
			n, _ := strconv.Atoi(found[1])
			c.sequences += n
		}
		if _, text, found := strings.Cut(e.Output, ".go:"); found {
			_, text, _ = strings.Cut(text, ": ")
			p.reason[e.Test] = strings.TrimSpace(text)
		}
		if strings.Contains(e.Output, ": not under the race detector: ") { // as redistest.NoRace says it
			p.unraced[e.Test] = true
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			c.end(e, p)
		} else {
			c.endTest(e, p)
		}
	}
}

var logged = regexp.MustCompile(`\bsequences: (\d+)\s*$`)

func cutLast(test string) (parent, name string, ok bool) {
	if i := strings.LastIndexByte(test, '/'); i >= 0 {
		return test[:i], test[i+1:], true
	}
	return "", test, false
}

func (c *counter) endTest(e event, p *pkg) {
	if p.ended[e.Test] != "fail" {
		p.ended[e.Test] = e.Action
	}
	parent, name, nested := cutLast(e.Test)
	if !nested {
		c.slow = append(c.slow, timing{path.Base(e.Package) + "." + e.Test, e.Elapsed})
	}
	switch {
	case e.Action == "fail":
		p.failing[parent] = true
		if !p.failing[e.Test] { // otherwise its failed subtests have been counted
			c.failed++
		}
	case e.Action == "skip" && p.unraced[e.Test]:
		c.unraced++
	case e.Action == "skip":
		c.skipped = append(c.skipped, path.Base(e.Package)+"."+e.Test+": "+p.reason[e.Test])
	case !p.parents[e.Test]:
		c.tests++
		if strings.HasPrefix(e.Test, "TestStories/") {
			c.stories[e.Package+" "+name] = true
		}
	}
}

// end prints the output of failed tests of a package, and then the line of the package. A test that did not
// end has failed: the package crashed in it, or its time was over.
func (c *counter) end(e event, p *pkg) {
	p.over = true
	failed := e.Action == "fail"
	if failed {
		counted := false
		for test, how := range p.ended {
			counted = counted || how == "fail"
			if how == "" && !p.parents[test] {
				c.failed++
				counted = true
			}
		}
		if !counted {
			c.failed++
		}
	}
	for _, l := range p.lines {
		own := l.test == "" && (strings.HasPrefix(l.text, "ok ") || strings.HasPrefix(l.text, "?  ") || strings.HasPrefix(l.text, "FAIL\t"))
		bad := failed && p.ended[l.test] != "pass" && p.ended[l.test] != "skip" && !strings.HasPrefix(l.text, "=== ")
		if own || bad {
			io.WriteString(c.out, l.text)
		}
	}
	p.lines = nil
}

// summarize prints missing counts and the totals, and reports whether the run succeeded. ended is the
// error with which go test ended.
func (c *counter) summarize(least map[string]int, ended error) bool {
	for _, name := range slices.Sorted(maps.Keys(c.packages)) {
		if p := c.packages[name]; !p.over {
			c.end(event{Action: "fail", Package: name}, p)
			fmt.Fprintf(c.out, "FAIL\t%s: the package did not end\n", name)
		}
	}
	if ended != nil && c.failed == 0 {
		fmt.Fprintf(c.out, "go test: %v\n", ended)
		c.failed++
	}
	c.printSlowest()
	for _, test := range c.skipped {
		fmt.Fprintln(c.out, "skipped:", test)
	}
	enough := true
	have := map[string]int{"tests": c.tests, "stories": len(c.stories), "sequences": c.sequences}
	for _, name := range names {
		if have[name] < least[name] {
			fmt.Fprintf(c.out, "too little was tested: %d %s, and the minimum is %d (.ci/minimum)\n", have[name], name, least[name])
			enough = false
		}
	}
	if c.tests == 0 && c.failed == 0 {
		fmt.Fprintln(c.out, "nothing was tested")
		enough = false
	}
	fmt.Fprintf(c.out, "%d stories, %d model sequences\n", len(c.stories), c.sequences)
	fmt.Fprintf(c.out, "%d passed, %d failed", c.tests, c.failed)
	if n := len(c.skipped); n > 0 {
		fmt.Fprintf(c.out, ", %d skipped", n)
	}
	if c.unraced > 0 {
		fmt.Fprintf(c.out, ", %d not under the race detector", c.unraced)
	}
	fmt.Fprintln(c.out)
	return enough && c.failed == 0
}

// slowest is how many of the slowest tests the summary names.
const slowest = 10

// printSlowest prints the slowest tests that took a second or more.
func (c *counter) printSlowest() {
	slices.SortStableFunc(c.slow, func(a, b timing) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range c.slow[:min(slowest, len(c.slow))] {
		if t.seconds >= 1 {
			fmt.Fprintf(c.out, "slow: %5.1f s  %s\n", t.seconds, t.test)
		}
	}
}

var names = []string{"tests", "stories", "sequences"}

// parseMinimum decodes lines "name value". A # begins a comment.
func parseMinimum(text string) (map[string]int, error) {
	least := map[string]int{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		var n int
		var err error
		if len(fields) == 2 {
			n, err = strconv.Atoi(fields[1])
		}
		if len(fields) != 2 || err != nil || !slices.Contains(names, fields[0]) {
			return nil, fmt.Errorf("%q is not valid: write one of %s and a number", strings.TrimSpace(line), strings.Join(names, ", "))
		}
		least[fields[0]] = n
	}
	return least, nil
}
