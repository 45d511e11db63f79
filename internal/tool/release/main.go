// Command release builds the archives of a release into a folder: the programs for each platform with completions, man pages and
// the license, and their SHA-256 checksums. It builds the commit of HEAD in two fresh clones, and fails if their archives differ.
// It needs Go and git. `make release` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var r release
	dirty := flag.Bool("dirty", false, "build HEAD although there are uncommitted changes, which are not built")
	flag.BoolVar(&r.cold, "cold", false, "build the second time without Go's build cache, which takes many minutes")
	flag.StringVar(&r.out, "out", "dist", "the folder to write; archives of an earlier release are removed")
	platforms := flag.String("platforms", strings.Join(everyPlatform, " "), "build for these")
	flag.Parse()
	r.platforms = strings.Fields(*platforms)
	err := errors.New("it takes no arguments")
	if flag.NArg() == 0 {
		err = r.run(ctx, *dirty)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var everyPlatform = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}

// release is what to build.
type release struct {
	platforms []string
	out       string
	cold      bool
}

// run builds the commit of HEAD twice, compares, and writes the folder.
func (r *release) run(ctx context.Context, dirty bool) error {
	changes, err := output(ctx, ".", nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" && !dirty {
		return fmt.Errorf("there are changes that are not committed: commit them, or build HEAD without them with -dirty (make release DIRTY=1)\n%s", changes)
	}
	source, err := output(ctx, ".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "curfew-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	first := &build{folder: filepath.Join(temp, "first")}
	second := &build{folder: filepath.Join(temp, "elsewhere", "second")}
	if r.cold {
		second.cache = filepath.Join(temp, "cache")
	}
	for _, b := range []*build{first, second} {
		if err := b.make(ctx, source, r.platforms); err != nil {
			return err
		}
	}
	if err := first.same(second); err != nil {
		return err
	}
	return first.write(r.out)
}

// output runs a program in a folder, and returns what it writes to stdout.
func output(ctx context.Context, folder string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
