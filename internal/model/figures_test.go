package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
)

// The bounds of the histograms, as docs/reference/keys.md has them.
var (
	modelTimes = []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000,
		600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000}
	modelLags   = []int64{1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000}
	modelShares = []int64{100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}
)

// figure counts the end of a task, as the hash of its kind must show it. The task must still have
// its state from before the end.
func (m *model) figure(t *modelTask, e modelEnding) {
	kind := t.given["kind"]
	if m.figures[kind] == nil {
		m.figures[kind] = map[string]int64{}
	}
	count := func(what string, n int64) { m.figures[kind][t.queue()+" "+what] += n }
	value := func(histogram string, bounds []int64, n int64) {
		bucket := "more"
		for _, bound := range slices.Backward(bounds) {
			if n <= bound {
				bucket = fmt.Sprint(bound)
			}
		}
		count(histogram+" "+bucket, 1)
		count(histogram+" sum", n)
	}
	count(strings.TrimRight(strings.Join([]string{"ended", string(e.status), e.reason, e.timeoutType}, " "), " "), 1)
	if t.status == queue.Running || t.status == queue.Waiting || t.woken {
		value("duration", modelTimes, max(e.at-t.started, 0)) // its owner's wait may have ended before the attempt began
		value("waiting", modelTimes, t.started-cmp.Or(t.readyAt, t.created))
	}
	if e.timeoutType != "" {
		value("lag", modelLags, m.now-e.at)
	}
	if span := t.deadline - t.created; t.deadline != 0 && span > 0 {
		value("share", modelShares, max((1000*(e.at-t.created)+span-1)/span, 0))
	} else if t.deadline != 0 {
		value("share", modelShares, 1000)
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
				}
			}
		}
		if line, ok := strings.CutPrefix(key, "queue:"); ok {
			for _, name := range []string{"completed", "failed", "cancelled"} {
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
