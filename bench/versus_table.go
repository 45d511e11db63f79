package bench

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/redis/go-redis/v9"
)

// Comparison is what Versus found.
type Comparison struct {
	Bench   string `json:"bench"`
	Against string `json:"against"` // the other library and its version
	Redis   string `json:"redis"`   // the server's version
	Tasks   int    `json:"tasks"`
	Runs    int    `json:"runs"`
	Servers int    `json:"servers"`
	Rows    []Row  `json:"rows"`
}

// Row is one load of a comparison, in tasks a second.
type Row struct {
	Name   string `json:"name"` // stable: enqueue_16, enqueue_64, enqueue_lists, drain, enqueue_and_drain
	What   string `json:"what"`
	Unit   string `json:"unit"`
	Curfew Spread `json:"curfew"`
	Asynq  Spread `json:"asynq"`
	Floor  Spread `json:"floor"`
	// Ratio is Curfew by asynq, of the runs that stood side by side. Above 1 Curfew is faster.
	Ratio Spread `json:"ratio"`
	// OfFloor is Curfew by the bare script, likewise.
	OfFloor Spread `json:"of_floor"`
}

func compare(c VersusConfig, version string, curfew, asynq, floor rates) Comparison {
	out := Comparison{Bench: "throughput --vs asynq", Against: strings.TrimSpace("asynq " + moduleVersion("github.com/hibiken/asynq")),
		Redis: version, Tasks: c.Tasks, Runs: c.Runs, Servers: c.Servers}
	for _, load := range loads {
		ours, theirs, bare := curfew[load.name], asynq[load.name], floor[load.name]
		out.Rows = append(out.Rows, Row{
			Name: load.name, What: load.what, Unit: "tasks/s",
			Curfew: spread(ours), Asynq: spread(theirs), Floor: spread(bare),
			Ratio: spread(ratios(ours, theirs)), OfFloor: spread(ratios(ours, bare)),
		})
	}
	return out
}

// WriteTable writes the comparison for people: medians, with the least and the most run.
func (c Comparison) WriteTable(out io.Writer) error {
	fmt.Fprintf(out, "tasks/s, median (min-max) of %d runs of %d tasks; %s, redis %s\n", c.Runs, c.Tasks, c.Against, c.Redis)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tcurfew\tasynq\tcurfew : asynq\tbare script\tcurfew : bare")
	for _, r := range c.Rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.What, r.Curfew.text(Digits), r.Asynq.text(Digits),
			r.Ratio.text(hundredths), Digits(r.Floor.Median), hundredths(r.OfFloor.Median))
	}
	return table.Flush()
}

func hundredths(v float64) string { return fmt.Sprintf("%.2f", v) }

// moduleVersion is the version of a module in this program, "" if it does not say.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}

// serverVersion is that of the Redis.
func serverVersion(ctx context.Context, rdb redis.UniversalClient) (string, error) {
	info, err := rdb.Info(ctx, "server").Result()
	return infoFields(info)["redis_version"], err
}
