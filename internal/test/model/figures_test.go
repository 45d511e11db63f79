package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// The bounds of the histograms, as docs/reference/keys.md has them.
var (
	modelTimes = []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000,
		600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000}
	modelLags   = []int64{1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000}
	modelShares = []int64{100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}
)

// count adds to a field of the kind and queue of a task.
func (m *model) count(t *modelTask, what string, n int64) {
	kind := t.given["kind"]
	if m.figures[kind] == nil {
		m.figures[kind] = map[string]int64{}
	}
	m.figures[kind][t.queue()+" "+what] += n
}

// value adds a value to a histogram.
func (m *model) value(t *modelTask, histogram string, bounds []int64, n int64) {
	n = max(n, 0) // also if the clock was set back meanwhile
	bucket := "more"
	for _, bound := range slices.Backward(bounds) {
		if n <= bound {
			bucket = fmt.Sprint(bound)
		}
	}
	m.count(t, histogram+" "+bucket, 1)
	m.count(t, histogram+" sum", n)
}

// figureNew counts a new task.
func (m *model) figureNew(t *modelTask) {
	source, start := "client", "now"
	switch {
	case t.given["hook_of"] != "":
		source = "hook"
	case t.given["retry_of"] != "":
		source = "retry"
	case names.OwnerOf(t.id) != "":
		source = "agent"
	}
	if t.available != 0 {
		start = "later"
	}
	m.count(t, "enqueued "+source+" "+start, 1)
}

// figure counts the end of a task, as the hash of its kind must show it. The task must still have
// its state from before the end.
func (m *model) figure(t *modelTask, e modelEnding) {
	ran, policy := "duration", ""
	if e.timeoutType != "" {
		ran, policy = "timed", "fail"
		if t.born > 0 && (e.timeoutType == "execution" || e.timeoutType == "workflow") {
			policy = cmp.Or(t.given["on_deadline"], "cancel_all")
		}
	}
	m.count(t, strings.TrimRight(strings.Join([]string{"ended", string(e.status), e.reason, e.timeoutType, policy}, " "), " "), 1)
	if t.status == queue.Running || t.status == queue.Waiting || t.woken {
		m.value(t, ran, modelTimes, max(e.at-t.started, 0)) // its owner's wait may have ended before the attempt began
		m.value(t, "waiting", modelTimes, t.started-cmp.Or(t.readyAt, t.created))
	}
	if e.timeoutType != "" {
		m.value(t, "lag "+e.timeoutType, modelLags, m.now-e.at)
	}
	if span := t.deadline - t.created; t.deadline != 0 && span > 0 {
		m.value(t, "share", modelShares, max((1000*(e.at-t.created)+span-1)/span, 0))
	} else if t.deadline != 0 {
		m.value(t, "share", modelShares, 1000)
	}
}

// formatFigures returns the figures as lines.
func (m *model) formatFigures() []string {
	lines := []string{fmt.Sprint("kinds ", slices.Sorted(maps.Keys(m.figures)))}
	for kind, counts := range m.figures {
		f := map[string]string{"about": "How the tasks of this kind ended and how long they took, by queue: see docs/reference/keys.md, Figures"}
		for field, n := range counts {
			f[field] = fmt.Sprint(n)
		}
		lines = append(lines, "figures:"+kind+" "+formatFields(f))
	}
	return lines
}

// miscounted returns the difference between the counters of queues and the sums of the figures.
func miscounted(s *audit.Snapshot) []string {
	sums, counters := map[string]int64{}, map[string]int64{}
	for key, fields := range s.Hashes {
		if strings.HasPrefix(key, "figures:") {
			for field, n := range fields {
				if words := strings.Split(field, " "); len(words) > 2 && words[1] == "ended" {
					sums[words[0]+" "+strings.ToLower(words[2])] += engine.Number(n)
				} else if len(words) > 2 && words[1] == "enqueued" {
					sums[words[0]+" enqueued"] += engine.Number(n)
				}
			}
		}
		if line, ok := strings.CutPrefix(key, "queue:"); ok {
			for _, name := range []string{"enqueued", "completed", "failed", "cancelled"} {
				if n := engine.Number(fields[name]); n > 0 {
					counters[line+" "+name] = n
				}
			}
		}
	}
	if maps.Equal(sums, counters) {
		return nil
	}
	return []string{fmt.Sprintf("the figures add up to %v, but the queues count %v", sums, counters)}
}
