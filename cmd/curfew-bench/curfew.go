package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
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

// withSuffix returns the file name of a program on this operating system.
func withSuffix(program string) string {
	if runtime.GOOS == "windows" {
		return program + ".exe"
	}
	return program
}

// httpCommand measures the API over HTTP: `curfew-bench http`.
func httpCommand() *cli.Command {
	command := benchmark("http", "requests a second of curfew serve, the delay of a result for a waiting request, and the memory of waiting requests", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 20000, Usage: "how many requests of each kind"},
			&cli.IntFlag{Name: "waiting", Value: 1000, Usage: "how many requests wait at once"},
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			ctx, stop := context.WithCancel(ctx)
			defer stop() // ends the server
			return bench.HTTP(ctx, rdb, bench.HTTPConfig{Tasks: c.Int("tasks"), Waiting: c.Int("waiting"),
				Serve: func(ctx context.Context) (string, *os.Process, error) {
					return startServe(ctx, c.String("curfew"), "redis://"+rdb.(*redis.Client).Options().Addr)
				}})
		})
	command.Description = `curfew serve runs as a process of its own. 16 clients of this process make the requests; the Go client makes the same calls beside it.`
	return ofCurfew(command)
}

// startServe starts `curfew serve`, and waits until it listens. The process ends with ctx.
func startServe(ctx context.Context, curfew, url string) (string, *os.Process, error) {
	cmd := exec.CommandContext(ctx, curfew, "serve", "--redis", url, "--namespace", "bench", "--listen", "127.0.0.1:0", "--log-format", "json")
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, err
	}
	go func() {
		<-ctx.Done()
		cmd.Wait()
	}()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line struct{ URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.URL != "" {
			go func() { // read on, so that the server can write
				for lines.Scan() {
				}
			}()
			return line.URL, cmd.Process, nil
		}
	}
	return "", nil, fmt.Errorf("curfew serve ended before it listened")
}
