package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// curfewPackage is the package of the program curfew.
const curfewPackage = "github.com/curfew-dev/curfew/cmd/curfew"

// curfewFlag returns the flag of the commands that measure the program curfew as a process.
func curfewFlag() cli.Flag {
	return &cli.StringFlag{Name: "curfew", DefaultText: "the one beside this program, or built from the clone",
		Usage: "the path of the program curfew that is measured"}
}

// ofCurfew gives a benchmark the flag --curfew. When it measures, the flag has the path of a program.
func ofCurfew(command *cli.Command) *cli.Command {
	command.Flags = append(command.Flags, curfewFlag())
	measure := command.Action
	command.Action = func(c *cli.Context) error {
		if err := checkBench(c); err != nil {
			return err
		}
		curfew, remove, err := findCurfew(c)
		if err != nil {
			return err
		}
		defer remove()
		if err := c.Set("curfew", curfew); err != nil {
			return err
		}
		return measure(c)
	}
	return command
}

// findCurfew returns the path of the program curfew: that of --curfew, or else the program beside this one, as in a release
// archive, so that both have one version. Under go run there is none beside it, and findCurfew builds one. remove removes that.
func findCurfew(c *cli.Context) (curfew string, remove func(), err error) {
	remove = func() {}
	if curfew = c.String("curfew"); curfew != "" {
		_, err := exec.LookPath(curfew)
		if err != nil {
			err = app.UsageOf(c, "--curfew: %v", err)
		}
		return curfew, remove, err
	}
	self, err := os.Executable()
	if err != nil {
		return "", remove, err
	}
	if curfew, err = besideOf(self); curfew != "" || err != nil {
		return curfew, remove, err
	}
	if curfew, remove, err = buildCurfew(c.Context); err != nil {
		err = app.UsageOf(c, "there is no curfew beside this program, and it cannot be built here: give its path with --curfew (%v)", err)
	}
	return curfew, remove, err
}

// besideOf returns the path of the program curfew in the folder of another program, "" if it is not there.
func besideOf(program string) (string, error) {
	path := filepath.Join(filepath.Dir(program), withSuffix("curfew"))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return path, nil
}

// buildCurfew builds the program curfew of the clone that the working folder is in. remove removes it.
func buildCurfew(ctx context.Context) (path string, remove func(), err error) {
	folder, err := os.MkdirTemp("", "curfew-bench-")
	if err != nil {
		return "", func() {}, err
	}
	remove = func() { os.RemoveAll(folder) }
	path = filepath.Join(folder, withSuffix("curfew"))
	// Without symbols, as in a release. The linker takes half as long.
	if out, err := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", path, curfewPackage).CombinedOutput(); err != nil {
		remove()
		return "", func() {}, fmt.Errorf("go build: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return path, remove, nil
}

// withSuffix returns the name of the file of a program on this system.
func withSuffix(program string) string {
	if runtime.GOOS == "windows" {
		return program + ".exe"
	}
	return program
}
