// Command drawn runs as many of the long tests as a time allows: `go run ./internal/tool/drawn -for 2m`.
//
// The long tests together take too long for each change. The hash of the tree draws which of them run, and seeds their
// random choices, so a repeat of the same tree plays the same and another tree plays others.
//
// A test that fails runs once more on the parent commit. If it passes there and then fails again here, the change has broken it,
// and drawn exits with 1. Otherwise the change is not its cause: drawn prints how to repeat it, as a known failure. A test that the
// time does not suffice for is ended, and judged by nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	duration := flag.Duration("for", 2*time.Minute, "how `long` to run tests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := draw{out: os.Stdout, dir: ".", over: time.Now().Add(*duration), most: *duration / 4}
	broken, err := d.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "drawn:", err)
		os.Exit(2)
	}
	if broken > 0 {
		os.Exit(1)
	}
}

// draw is one run.
type draw struct {
	out  io.Writer
	dir  string // of the repository
	over time.Time
	most time.Duration // for one test

	tree   string // the hash of the tree
	seed   uint64 // made of it
	own    string // a folder for test binaries, and for the parent commit
	parent string // the folder of the parent commit, "" if no test needed it yet
}

// perPackage is how many tests of a package run at most, so that a draw has tests of several packages.
const perPackage = 8

// run returns how many tests the change has broken.
func (d *draw) run(ctx context.Context) (broken int, err error) {
	if d.tree, err = d.git(ctx, "rev-parse", "HEAD^{tree}"); err != nil {
		return 0, err
	}
	if d.own, err = os.MkdirTemp("", "curfew-drawn"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(d.own)
	defer func() {
		if d.parent != "" {
			d.git(context.WithoutCancel(ctx), "worktree", "remove", "--force", d.parent)
		}
	}()
	packages, err := sized(d.dir)
	if err != nil {
		return 0, err
	}
	hash := fnv.New64a()
	io.WriteString(hash, d.tree)
	d.seed = hash.Sum64() % 1_000_000_000
	random := rand.New(rand.NewPCG(d.seed, 0))
	random.Shuffle(len(packages), func(i, j int) { packages[i], packages[j] = packages[j], packages[i] })
	ran, known, ended := 0, 0, 0
	for _, p := range packages {
		if ctx.Err() != nil || time.Now().After(d.over) {
			break // before the next package is built
		}
		binary, tests, err := d.build(ctx, d.dir, p)
		if err != nil {
			return broken, err
		}
		random.Shuffle(len(tests), func(i, j int) { tests[i], tests[j] = tests[j], tests[i] })
		for _, test := range tests[:min(perPackage, len(tests))] {
			if ctx.Err() != nil || time.Now().After(d.over) {
				break
			}
			passes, said := d.test(ctx, d.dir, p, binary, test)
			if said == "" {
				if passes {
					ran++
				} else {
					ended++
				}
				continue
			}
			ran++
			d.over = d.over.Add(3 * d.most) // a failure deserves more time
			was, err := d.before(ctx, p, test)
			if err != nil {
				return broken, err
			}
			what := "known failure, also without this change"
			if _, again := d.test(ctx, d.dir, p, binary, test); was && again != "" {
				what = "FAIL"
				broken++
				fmt.Fprint(d.out, again)
			} else {
				known++
				if was {
					what = "known failure, which did not repeat itself"
				}
			}
			fmt.Fprintf(d.out, "%s: CURFEW_LONG=1 CURFEW_SEED=%d go test ./%s -run '^%s$'\n", what, d.seed, p, test)
		}
	}
	fmt.Fprintf(d.out, "the tree draws %d long tests: %d broken by the change, %d known failures; %d took too long and were ended\n", ran, broken, known, ended)
	return broken, ctx.Err()
}

// longSize matches the ways to ask for the long size.
var longSize = regexp.MustCompile(`\b(size|stages)\.(Times|Long|Drawn)\(`)

// unsized are packages that are not drawn: this one, and the one that measures time.
var unsized = []string{"internal/tool/drawn", "internal/test/timing"}

// sized returns the packages whose tests have a long size.
func sized(dir string) (packages []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{"testdata", "node_modules", ".git"}, entry.Name()) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		p, _ := filepath.Rel(dir, filepath.Dir(path))
		if !slices.Contains(unsized, filepath.ToSlash(p)) && longSize.Match(text) && !slices.Contains(packages, p) {
			packages = append(packages, filepath.ToSlash(p))
		}
		return err
	})
	return packages, err
}

// build builds the test binary of a package in a folder, and returns the names of its tests.
func (d *draw) build(ctx context.Context, dir, p string) (binary string, tests []string, err error) {
	binary = filepath.Join(d.own, strconv.Itoa(len(dir))+strings.ReplaceAll(p, "/", "_")+".test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./"+p)
	build.Dir = dir
	if said, err := build.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go test -c ./%s: %w\n%s", p, err, said)
	}
	list := exec.CommandContext(ctx, binary, "-test.list", "^Test")
	list.Dir = filepath.Join(dir, p)
	said, err := list.Output()
	return binary, strings.Fields(string(said)), err
}

// test runs one test in its long size. said is the output if the test failed. If the time did not suffice, passes is false and said
// is "". The test does not know how much time it has, so that it waits for nothing less long because of that.
func (d *draw) test(ctx context.Context, dir, p, binary, test string) (passes bool, said string) {
	timed, cancel := context.WithDeadline(ctx, time.Now().Add(min(d.most, time.Until(d.over))))
	defer cancel()
	run := exec.CommandContext(timed, binary, "-test.run", "^"+test+"$")
	run.WaitDelay = 10 * time.Second
	run.Dir = filepath.Join(dir, p)
	run.Env = append(os.Environ(), "CURFEW_LONG=1", "CURFEW_SEED="+strconv.FormatUint(d.seed, 10))
	out, err := run.CombinedOutput()
	if err == nil || timed.Err() != nil {
		return err == nil, ""
	}
	return false, string(out) + err.Error() + "\n"
}

// before reports whether a test passes on the parent commit, or is not there.
func (d *draw) before(ctx context.Context, p, test string) (passes bool, err error) {
	if d.parent == "" {
		d.parent = filepath.Join(d.own, "parent")
		if _, err := d.git(ctx, "worktree", "add", "--detach", d.parent, "HEAD^"); err != nil {
			shallow, err := d.git(ctx, "rev-parse", "--is-shallow-repository")
			return shallow != "true", err // the first commit has no parent; of a shallow clone nobody knows
		}
	}
	if _, err := os.Stat(filepath.Join(d.parent, p)); err != nil {
		return true, nil
	}
	binary, tests, err := d.build(ctx, d.parent, p)
	if err != nil || !slices.Contains(tests, test) {
		return true, err
	}
	passes, _ = d.test(ctx, d.parent, p, binary, test)
	return passes, nil
}

func (d *draw) git(ctx context.Context, args ...string) (string, error) {
	git := exec.CommandContext(ctx, "git", args...)
	git.Dir = d.dir
	var complaint strings.Builder
	git.Stderr = &complaint
	out, err := git.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSpace(string(out)), nil
}
