package fleet

import (
	"fmt"
	"math"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

// suggestion is a line of `kind suggest`. Bounds that are not known are null.
type suggestion struct {
	Kind     string `json:"kind"`
	Count    int64  `json:"count"`
	TimedOut int64  `json:"timed_out"`
	P50      *int64 `json:"p50_ms"`
	P99      *int64 `json:"p99_ms"`
	P995     *int64 `json:"p995_ms"`
	Percent  int    `json:"factor_percent"`
	Timeout  *int64 `json:"attempt_timeout_ms"`
}

func kindSuggestCommand() *cli.Command {
	return &cli.Command{
		Name:      "suggest",
		Usage:     "suggest a timeout for attempts of kinds, from how long their tasks took",
		ArgsUsage: "KIND...",
		Description: `The suggestion is the factor times what 99.5 % of the tasks took at most. It changes nothing: set it with ` + "`curfew kind set`" + `, or let
nodes of flows have adaptive times. Tasks that timed out count with the time that they had. If they are many, the tasks need more than
the figures say. The bounds are those of the buckets of the figures.

    curfew kind suggest render --factor 200`,
		Flags: append(app.NamespaceFlags(), app.NumberFlag("factor", 150, 100, 10_000, "the timeout as percent of what 99.5 % of the tasks took"), app.FormatFlag()),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Takes(1, math.MaxInt, "the names of one or more kinds"), func(c *cli.Context, q *queue.Queue, names []string) error {
			kinds, err := lines.ReadKinds(c.Context, q)
			if err != nil {
				return err
			}
			suggested, err := inspect.Suggest(c.Context, q, names...)
			if err != nil {
				return err
			}
			byKind := map[string]inspect.Suggestion{}
			for name := range kinds {
				byKind[name] = inspect.Suggestion{Kind: name}
			}
			for _, s := range suggested {
				if kinds[s.Kind] != nil {
					byKind[s.Kind] = s
				}
			}
			return showEach("kind", names, byKind, "`curfew kind ls` lists those of which a task was created, or which have defaults or a worker",
				func(s inspect.Suggestion) error { return showSuggestion(c, s) })
		}),
	}
}

func showSuggestion(c *cli.Context, s inspect.Suggestion) error {
	percent := c.Int("factor")
	timeout := s.Timeout(float64(percent) / 100)
	if app.InJSON(c) {
		return app.PrintLine(c, suggestion{s.Kind, s.Count, s.TimedOut, msOf(s.P50), msOf(s.P99), msOf(s.P995), percent, msOf(timeout)})
	}
	if s.Count == 0 {
		return facts(c, s.Kind, "ended", "0", "suggested", "nothing: no task of the kind has run and ended")
	}
	pairs := []string{
		"ended", fmt.Sprintf("%s, %s of them timed out", app.Grouped(s.Count), app.Grouped(s.TimedOut)),
		"took", fmt.Sprintf("p50 %s, p99 %s, p99.5 %s", knownText(s.P50), knownText(s.P99), knownText(s.P995)),
	}
	if timeout == 0 {
		return facts(c, s.Kind, append(pairs, "suggested", "nothing: some of them took longer than a day")...)
	}
	return facts(c, s.Kind, append(pairs, "suggested", fmt.Sprintf("--attempt-timeout %s (%d %% of p99.5)", duration.Duration(timeout), percent))...)
}

func msOf(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

func knownText(d time.Duration) string {
	if d == 0 {
		return "more than a day"
	}
	return duration.Duration(d).String()
}
