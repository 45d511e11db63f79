package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/duration"
)

// durationFlag is a flag that reads durations as all of Curfew does, days among them,
// and whose refusals say what to write. Not cli.DurationFlag, which does neither.
func durationFlag(name string, value time.Duration, usage string) cli.Flag {
	d := duration.Duration(value)
	return &cli.GenericFlag{Name: name, Value: &d, Usage: usage}
}

// durationOf is the value of a durationFlag, and 0 where the command has no such flag.
func durationOf(c *cli.Context, name string) time.Duration {
	if d, ok := c.Generic(name).(*duration.Duration); ok {
		return time.Duration(*d)
	}
	return 0
}
