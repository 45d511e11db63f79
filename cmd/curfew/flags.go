package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/duration"
)

// durationFlag returns a flag that reads durations as the rest of Curfew does: with days, and
// with errors that say what to write. cli.DurationFlag does neither.
func durationFlag(name string, value time.Duration, usage string) cli.Flag {
	d := duration.Duration(value)
	return &cli.GenericFlag{Name: name, Value: &d, Usage: usage}
}

// durationOf returns the value of a durationFlag, or 0 if the command has no such flag.
func durationOf(c *cli.Context, name string) time.Duration {
	if d, ok := c.Generic(name).(*duration.Duration); ok {
		return time.Duration(*d)
	}
	return 0
}
