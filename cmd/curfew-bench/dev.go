package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
)

// devCommand measures the first seconds of `curfew dev`: `curfew-bench dev`.
func devCommand() *cli.Command {
	return &cli.Command{
		Name:  "dev",
		Usage: "how soon curfew dev shows its hung task end and its agent wake, beside the timeout of the task",
		Description: `Each run starts curfew dev as a process of its own, on an embedded server, and reads its lines. The time of a run
begins before the process starts; the timeout of the demo's task is taken off.

    curfew-bench dev --runs 10`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "runs", Value: 10, Usage: "how often to measure; prints the median"},
			app.DurationFlag("timeout", 3*time.Second, "the timeout of the demo's task, 100ms to 1m"),
			curfewFlag(),
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := checkBench(c); err != nil {
				return err
			}
			timeout := app.DurationOf(c, "timeout")
			if timeout < 100*time.Millisecond || timeout > time.Minute {
				return app.UsageOf(c, "--timeout %v must be from 100ms to 1m", duration.Duration(timeout))
			}
			curfew, remove, err := findCurfew(c)
			if err != nil {
				return err
			}
			defer remove()
			var reports []bench.Report
			for range c.Int("runs") {
				report, err := firstSeconds(c.Context, curfew, timeout)
				if err != nil {
					return err
				}
				reports = append(reports, report)
			}
			return print(c.App.Writer, c.String("output"), bench.Median(reports))
		},
	}
}

// firstSeconds runs `curfew dev` until its agent has woken.
func firstSeconds(ctx context.Context, curfew string, timeout time.Duration) (report bench.Report, err error) {
	cmd := exec.CommandContext(ctx, curfew, "dev", "--port", "0", "--demo", "-o", "text", "--timeout", timeout.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return report, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return report, err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	report.Bench = "dev"
	told := func(name string, off time.Duration) {
		report.Figures = append(report.Figures, bench.Figure{Name: name, Value: float64((time.Since(began) - off).Microseconds()) / 1000, Unit: "ms"})
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "  Redis "):
			told("start to the address of the server", 0)
		case strings.Contains(line, "  TIMEOUT "):
			told("start to the timeout, without its time", timeout)
		case strings.Contains(line, "  woke "):
			told("start to the wake-up, without that time", timeout)
			return report, nil
		}
	}
	if ctx.Err() != nil {
		return report, ctx.Err()
	}
	return report, errors.New("curfew dev ended before its agent had woken")
}
