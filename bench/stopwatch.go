package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// stopwatch measures how much time of Redis a step takes. It resets the statistics of the
// server.
type stopwatch struct {
	rdb redis.UniversalClient
}

// use is the time that a step took, in µs.
type use struct {
	cpu    float64 // CPU time of the main thread, which includes sockets
	script float64 // elapsed time within scripts and functions
	median float64 // median elapsed time of one call of a script or function
}

func (w *stopwatch) time(ctx context.Context, step func() error) (use, error) {
	if err := w.rdb.ConfigResetStat(ctx).Err(); err != nil {
		return use{}, err
	}
	before, err := w.cpu(ctx)
	if err != nil {
		return use{}, err
	}
	if err := step(); err != nil {
		return use{}, err
	}
	after, err := w.cpu(ctx)
	if err != nil {
		return use{}, err
	}
	stats, err := w.rdb.Info(ctx, "commandstats", "latencystats").Result()
	if err != nil {
		return use{}, err
	}
	u, err := scriptUse(infoFields(stats))
	u.cpu = after - before
	return u, err
}

// cpu returns the CPU time of the main thread in µs, or that of the whole server if the server
// does not report its main thread.
func (w *stopwatch) cpu(ctx context.Context) (float64, error) {
	info, err := w.rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	return mainThread(infoFields(info))
}

func mainThread(fields map[string]string) (float64, error) {
	sum := 0.0
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		text, ok := fields[name+"_main_thread"]
		if !ok {
			text = fields[name]
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot read %s of the server's INFO: it is %q", name, text)
		}
		sum += seconds * 1e6
	}
	return sum, nil
}

// scriptCommands are the commands that call a script or a function.
var scriptCommands = []string{"evalsha", "fcall", "eval", "evalsha_ro", "fcall_ro", "eval_ro"}

// scriptUse returns the time of scripts from the lines of INFO commandstats and latencystats. The median is taken
// from the command with the most calls.
func scriptUse(fields map[string]string) (use, error) {
	var u use
	highest := 0.0
	for _, command := range scriptCommands {
		stats, ok := fields["cmdstat_"+command]
		if !ok {
			continue
		}
		calls, err := pair(stats, "calls")
		if err != nil {
			return use{}, err
		}
		took, err := pair(stats, "usec")
		if err != nil {
			return use{}, err
		}
		u.script += took
		if calls > highest {
			highest = calls
			if u.median, err = pair(fields["latency_percentiles_usec_"+command], "p50"); err != nil {
				return use{}, err
			}
		}
	}
	return u, nil
}

// pair reads a number from a list such as calls=1,usec=20.
func pair(list, name string) (float64, error) {
	for item := range strings.SplitSeq(list, ",") {
		if value, ok := strings.CutPrefix(item, name+"="); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("the server's INFO has no %s in %q", name, list)
}
