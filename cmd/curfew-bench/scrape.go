package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

// scrapeCommand measures what a scrape of the metrics costs: `curfew-bench scrape`.
func scrapeCommand() *cli.Command {
	return benchmark("scrape", "what a scrape of the metrics costs: time, size of the text, and processor time of Redis", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 500000, Usage: "how many live tasks with a deadline the namespace has"},
			&cli.IntFlag{Name: "queues", Value: 50, Usage: "how many queues they are in"},
			&cli.IntFlag{Name: "kinds", Value: 200, Usage: "how many kinds they have"},
			&cli.IntFlag{Name: "spread", Value: 1, Usage: "in how many queues each kind has tasks"},
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Scrape(ctx, rdb, bench.ScrapeConfig{Tasks: c.Int("tasks"), Queues: c.Int("queues"), Kinds: c.Int("kinds"), Spread: c.Int("spread")})
		})
}
