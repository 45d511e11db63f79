package engine

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/names"
)

// Report is what a call has done beside its answer: tasks that it ended because their time was up, and agents
// that it woke. A change is in the report of one call alone. If the reply of that call is lost, it is in none.
type Report struct {
	TimedOut []TimedOut
	Woken    []Woken
}

// TimedOut is a task that timed out.
type TimedOut struct {
	Partition       int
	ID, Kind, Queue string
	Type            string        // execution, queue, attempt, workflow
	Due             time.Time     // when its time was up
	Lag             time.Duration // how long after Due the end was written
}

// Woken is an agent that was put in line again, since its wait is over.
type Woken struct {
	Partition       int
	ID, Kind, Queue string
	Reason          string // how the wait ended: satisfied, impossible, timed_out
	Member          string // the id of the member that decided the wait; "" if none did
	MemberTimeout   string // the type of the timeout if that member timed out, otherwise ""
}

// Resumed reports whether a timeout of a task resumed the agent.
func (w *Woken) Resumed() bool { return w.MemberTimeout != "" }

func (r *Report) empty() bool { return len(r.TimedOut) == 0 && len(r.Woken) == 0 }

// reportWords is how many words a report has (lua/store/tell.lua).
const reportWords = 7

// ReadReport separates the reply of a call from what it reports.
func ReadReport(partition int, reply any) (any, Report, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) == 0 || parts[0] != "told" {
		return reply, Report{}, nil
	}
	if len(parts) != 3 {
		return nil, Report{}, Unexpected("answer", reply)
	}
	lines, err := Elements(parts[1], nil)
	if err != nil {
		return nil, Report{}, err
	}
	var r Report
	for _, line := range lines {
		w := strings.Split(Text(line), " ")
		if len(w) != reportWords {
			return nil, Report{}, Unexpected("report", line)
		}
		switch id, kind, queue := w[1], w[2], w[3]; w[0] {
		case "timed_out":
			if r.TimedOut == nil {
				r.TimedOut = make([]TimedOut, 0, len(lines))
			}
			r.TimedOut = append(r.TimedOut, TimedOut{Partition: partition, ID: id, Kind: kind, Queue: queue, Type: w[4],
				Due: Instant(w[5]).UTC(), Lag: time.Duration(Number(w[6])) * time.Millisecond})
		case "woken":
			woken := Woken{Partition: partition, ID: id, Kind: kind, Queue: queue, Reason: w[4]}
			if w[5] != "-" {
				woken.Member = id + "." + w[5]
			}
			if w[6] != "-" {
				woken.MemberTimeout = w[6]
			}
			r.Woken = append(r.Woken, woken)
		}
	}
	return parts[2], r, nil
}

// loggerKey is the key of a context's logger.
type loggerKey struct{}

// LogTo returns a context whose calls log what they report to a logger, in place of that of the namespace.
func LogTo(ctx context.Context, logger *slog.Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, logger)
}

// listeners are functions that get each report.
type listeners struct {
	mu  sync.RWMutex
	all []func(context.Context, Report)
}

// OnReport calls f with each report of a call, after it was logged. f runs in the goroutine of the caller, with the
// context of the call, so it must return soon.
func (e *Engine) OnReport(f func(ctx context.Context, r Report)) {
	e.listeners.mu.Lock()
	defer e.listeners.mu.Unlock()
	e.listeners.all = append(slices.Clip(e.listeners.all), f)
}

// report logs a report and gives it to the listeners.
func (e *Engine) report(ctx context.Context, r Report) {
	logger, ok := ctx.Value(loggerKey{}).(*slog.Logger)
	if !ok {
		logger = e.logger
	}
	r.log(ctx, logger)
	e.listeners.mu.RLock()
	all := e.listeners.all
	e.listeners.mu.RUnlock()
	for _, f := range all {
		f(ctx, r)
	}
}

// instantLayout is RFC 3339 with milliseconds, which are left out if they are zero.
const instantLayout = "2006-01-02T15:04:05.999Z07:00"

// log writes a line for each timeout, and then one for each agent that a timeout resumed.
func (r *Report) log(ctx context.Context, logger *slog.Logger) {
	if !logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for _, t := range r.TimedOut {
		attrs := []slog.Attr{slog.String("task_id", t.ID), slog.String("deadline", t.Due.Format(instantLayout)), slog.String("queue", t.Queue), slog.String("kind", t.Kind)}
		if owner := names.OwnerOf(t.ID); owner != "" {
			attrs = append(attrs, slog.String("agent_id", owner), slog.String("run_id", names.RootOf(t.ID)))
		}
		attrs = append(attrs, slog.String("timeout_type", t.Type), slog.Int64("lag_ms", t.Lag.Milliseconds()))
		logger.LogAttrs(ctx, slog.LevelInfo, "Task timed out", attrs...)
	}
	for _, w := range r.Woken {
		if w.Resumed() {
			logger.LogAttrs(ctx, slog.LevelInfo, "Resuming agent after task timeout", slog.String("agent_id", w.ID), slog.String("task_id", w.Member),
				slog.String("queue", w.Queue), slog.String("kind", w.Kind), slog.String("run_id", names.RootOf(w.ID)))
		}
	}
}
