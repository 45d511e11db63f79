package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	limit = 60 * time.Second // within which a bug must be found
	hang  = 5 * limit        // a test that takes longer hangs: without a bug, all stories run, and the machine may be busy
)

// found is the result of a hunt for a bug.
type found struct {
	by    string // the test that failed; if none failed, why
	after time.Duration
	said  string // the output before the failure
	ok    bool
}

// survived stands in found.by if no test failed.
const survived = "NOT FOUND"

func (f found) inTime() bool { return f.ok && f.after < limit }

var failed = regexp.MustCompile(`^\s*--- FAIL: (\S+)`)

// control runs each part that the bugs name on the unchanged Lua, and all stories if a bug
// names one. A test that fails without a bug cannot show that a bug is found.
func (g *ground) control(bugs []bug) error {
	asked := map[string]bool{}
	for _, b := range bugs {
		if _, err := partOf(os.DirFS(g.tree), b.by); err != nil {
			return fmt.Errorf("bug %q: %w", b.name, err)
		}
		by := whole(b.by)
		if asked[by] {
			continue
		}
		asked[by] = true
		f, err := g.hunt(bug{name: "none", by: by})
		if err != nil {
			return err
		}
		if f.by != survived {
			return fmt.Errorf("%s fails without a bug, so it cannot find one: fix %s first\n%s", by, f.by, f.said)
		}
		fmt.Printf(row, "none", f.after.Seconds(), by+" passes")
	}
	return nil
}

// hunt plants a bug and runs its story, or its part of the suite, until a test fails.
func (g *ground) hunt(b bug) (found, error) {
	p, err := partOf(os.DirFS(g.tree), b.by)
	if err != nil {
		return found{}, err
	}
	binary, err := g.binary(p.pkg)
	if err != nil {
		return found{}, err
	}
	own, err := os.MkdirTemp(g.own, "bug")
	if err != nil {
		return found{}, err
	}
	defer os.RemoveAll(own)
	if err := os.RemoveAll(g.planted()); err != nil {
		return found{}, err
	}
	if err := copyWith(b, os.DirFS(g.lua()), g.planted()); err != nil {
		return found{}, err
	}

	// The test binary has a timeout of its own: it prints where it hangs, and cleans up. A
	// process that does not end by then is killed.
	ctx, cancel := context.WithTimeout(context.Background(), hang+30*time.Second)
	defer cancel()
	test := exec.CommandContext(ctx, binary, append([]string{"-test.run", p.run, "-test.v", "-test.failfast",
		"-test.timeout", hang.String()}, p.args...)...)
	test.Dir = filepath.Join(g.tree, p.pkg)
	test.Env = append(os.Environ(), "TMPDIR="+own)
	return watch(test, b)
}

// watch runs a test process and returns what it found.
func watch(test *exec.Cmd, b bug) (found, error) {
	said, err := test.StdoutPipe()
	if err != nil {
		return found{}, err
	}
	test.Stderr = test.Stdout
	begun := time.Now()
	if err := test.Start(); err != nil {
		return found{}, err
	}
	f := listen(said, begun)
	ended := test.Wait()
	switch {
	case strings.Contains(f.said, "Error compiling"):
		return f, fmt.Errorf("bug %q: the planted text is not valid Lua\n%s", b.name, f.said)
	case !f.ok && ended != nil:
		f.by = fmt.Sprintf("%s: no test failed, but %s ended with %v", survived, b.by, ended)
	}
	return f, nil
}

// listen reads the output of a test process until it ends. The first failure counts. A test
// prints its own failure before those of its subtests, so the innermost subtest is kept.
func listen(said io.Reader, begun time.Time) found {
	f := found{by: survived}
	var before []string
	lines := bufio.NewScanner(said)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if match := failed.FindStringSubmatch(lines.Text()); match != nil {
			if !f.ok {
				f.after = time.Since(begun)
			}
			if !f.ok || strings.HasPrefix(match[1], f.by+"/") {
				f.by = match[1]
			}
			f.ok = true
		}
		if f.ok {
			continue
		}
		before = append(before, lines.Text())
		if len(before) > 40 {
			before = before[1:]
		}
	}
	f.said = strings.Join(before, "\n")
	if !f.ok {
		f.after = time.Since(begun)
	}
	return f
}
