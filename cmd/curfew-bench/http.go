package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

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
