package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// MicroReport is the result of Micro.
type MicroReport struct {
	Bench  string `json:"bench"`
	Redis  string `json:"redis"` // the server's version
	Rounds int    `json:"rounds"`
	Tasks  int    `json:"tasks"`
	Costs  []Cost `json:"costs"`
}

// Cost is the cost of a call to Redis, in µs for one task, call or agent.
type Cost struct {
	Call   string `json:"call"`            // stable; see Micro
	Batch  int    `json:"batch,omitempty"` // tasks a call
	Per    string `json:"per"`             // task, call or agent
	CPU    Spread `json:"cpu_us"`          // of the main thread
	Script Spread `json:"script_us"`       // elapsed time within scripts
	Median Spread `json:"median_call_us"`  // elapsed time of a whole call
}

// Name returns the call with its batch size: "enqueue 50".
func (c Cost) Name() string {
	if c.Batch == 0 {
		return c.Call
	}
	return fmt.Sprint(c.Call, " ", c.Batch)
}

func (m *micro) report(version string, c MicroConfig) MicroReport {
	out := MicroReport{Bench: "micro", Redis: version, Rounds: c.Rounds, Tasks: c.Tasks}
	for _, name := range m.calls {
		of := func(field func(sample) float64) Spread {
			var values []float64
			for _, s := range m.samples[name] {
				values = append(values, field(s))
			}
			return spread(values)
		}
		out.Costs = append(out.Costs, Cost{
			Call: name.call, Batch: name.batch, Per: name.per,
			CPU:    of(func(s sample) float64 { return s.cpu }),
			Script: of(func(s sample) float64 { return s.script }),
			Median: of(func(s sample) float64 { return s.median }),
		})
	}
	return out
}

// WriteTable writes the report as a table for people: medians, with the least and the most.
func (r MicroReport) WriteTable(out io.Writer) error {
	fmt.Fprintf(out, "µs of Redis, median (min-max) of %d rounds; redis %s\n", r.Rounds, r.Redis)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "call\tby the\tCPU\twithin scripts\tmedian call")
	for _, c := range r.Costs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", c.Name(), c.Per, c.CPU.text(Digits), Digits(c.Script.Median), Digits(c.Median.Median))
	}
	return table.Flush()
}
