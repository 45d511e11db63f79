package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/lines"
)

// look is how a view is drawn.
type look struct {
	width, height int
	order         int // index of orders
	skip          int // how many queues are scrolled past
	paused        bool
	every         string // how often it is refreshed; "": once, so there are no keys
}

// orders are the orders of queues. Those of equal queues are by name.
var orders = []struct {
	name string
	of   func(lines.Queue) int64
}{
	{"name", func(lines.Queue) int64 { return 0 }},
	{"in line", func(l lines.Queue) int64 { return l.Ready }},
	{"running", func(l lines.Queue) int64 { return l.Running }},
	{"timed out", func(l lines.Queue) int64 { return l.TimedOut }},
}

// queueColumns are the columns of numbers, those that matter most first: a narrow screen has fewer.
var queueColumns = []struct {
	name string
	of   func(lines.Queue) string
}{
	{"in line", func(l lines.Queue) string { return app.Grouped(l.Ready) }},
	{"running", func(l lines.Queue) string { return app.Grouped(l.Running) }},
	{"waiting", func(l lines.Queue) string { return app.Grouped(l.Waiting) }},
	{"timed out", func(l lines.Queue) string { return app.Grouped(l.TimedOut) }},
	{"failed", func(l lines.Queue) string { return app.Grouped(l.Failed) }},
	{"completed", func(l lines.Queue) string { return app.Grouped(l.Completed) }},
	{"dead", func(l lines.Queue) string { return app.Grouped(l.Dead) }},
}

// draw returns the lines of a screen, no more than its height, each no wider than its width. Texts of users are in
// printable ASCII, so they take a cell for each byte and cannot control the terminal.
func draw(v view, l look) []string {
	lines := []string{title(v, l), totals(v), dueStrip(v, l.width)}
	if lag := lagText(v); lag != "" {
		lines = append(lines, lag)
	}
	if v.err != nil {
		lines = append(lines, "! "+plain(v.err.Error()))
	}
	foot := 0
	if l.every != "" {
		foot = 1
	}
	sections := [][]string{queueRows(v, l), dueRows(v), workerRows(v)}
	for i, n := range share(l.height-len(lines)-foot, sections) {
		if n > 1 { // a blank line, and the heading
			lines = append(append(lines, ""), sections[i][:n-1]...)
		}
	}
	if foot == 1 {
		for len(lines) < l.height-1 {
			lines = append(lines, "")
		}
		lines = append(lines[:min(len(lines), max(l.height-1, 0))], "q quit  p pause  s sort  up/down scroll")
	}
	lines = lines[:min(len(lines), max(l.height, 0))]
	for i, line := range lines {
		lines[i] = strings.TrimRight(fit(line, l.width), " ")
	}
	return lines
}

// share divides the lines of a screen among sections. A blank line precedes each. The first section
// gets half of the lines, and the lines that the others do not need.
func share(lines int, sections [][]string) []int {
	got := make([]int, len(sections))
	for i := len(sections) - 1; i > 0; i-- {
		quarter := lines / 4
		if quarter < 3 || len(sections[i]) < 2 { // a heading alone says nothing
			continue
		}
		got[i] = min(quarter, len(sections[i])+1)
	}
	rest := lines
	for _, n := range got {
		rest -= n
	}
	got[0] = max(0, min(rest, len(sections[0])+1))
	rest -= got[0]
	for i := 1; i < len(sections) && rest > 0; i++ { // what the queues leave
		if len(sections[i]) > 1 && got[i]+rest > 2 {
			more := min(rest, len(sections[i])+1-got[i])
			got[i], rest = got[i]+more, rest-more
		}
	}
	return got
}

// fit cuts a line to a width, in characters.
func fit(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:max(width, 0)])
}

// cut cuts a name to a width, and marks that.
func cut(name string, width int) string {
	if len(name) <= width {
		return name
	}
	return name[:max(width-1, 0)] + "~"
}

func title(v view, l look) string {
	words := []string{"curfew top", cut(plain(v.namespace), 24)}
	if l.paused {
		words = append(words, "paused")
	}
	if by := orders[l.order].name; by != orders[0].name {
		words = append(words, "by "+by)
	}
	words = append(words, v.due.Now.UTC().Format("15:04:05")+" UTC")
	if l.every != "" {
		words = append(words, "every "+l.every)
	}
	return strings.Join(words, "  ")
}

func totals(v view) string {
	var sum lines.Queue
	paused := 0
	for _, q := range v.queues {
		sum.Ready, sum.Running, sum.Waiting = sum.Ready+q.Ready, sum.Running+q.Running, sum.Waiting+q.Waiting
		paused += q.Paused
	}
	text := fmt.Sprintf("%s in line, %s running, %s waiting; %s, %s", app.Grouped(sum.Ready), app.Grouped(sum.Running), app.Grouped(sum.Waiting),
		app.Plural(int64(len(v.queues)), "queue", "queues"), app.Plural(int64(len(v.workers)), "worker", "workers"))
	if paused > 0 {
		text += fmt.Sprintf("; %d paused", paused)
	}
	return text
}

// lagText describes the delay of the newest timeouts.
func lagText(v view) string {
	n := len(v.lags)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("lag p50 %v max %v of %s", v.lags[(n-1)/2], v.lags[n-1], app.Plural(int64(n), "timeout", "timeouts"))
}

// dueStrip returns a line with the number of deadlines over time.
func dueStrip(v view, width int) string {
	text := "due in " + spanText(v.due.Within) + " "
	if width >= 70 && len(v.due.Buckets) > 0 {
		text += strip(v.due.Buckets) + " "
	}
	return text + app.Grouped(v.due.Sum()) + ", overdue " + app.Grouped(v.due.Overdue)
}

func queueRows(v view, l look) []string {
	queues := slices.Clone(v.queues)
	by := orders[l.order]
	slices.SortStableFunc(queues, func(a, b lines.Queue) int {
		return cmp.Or(cmp.Compare(by.of(b), by.of(a)), strings.Compare(a.Queue, b.Queue))
	})
	const cell = 11
	name, held := 8, 0 // widths
	for _, q := range queues {
		name = max(name, len(plain(q.Queue)))
		if q.Paused == 1 {
			held = len("  paused")
		}
	}
	name = min(name, max(l.width/3, 8), 40)
	columns := queueColumns[:max(0, min(len(queueColumns), (l.width-name-held)/cell))]
	heading := fmt.Sprintf("%-*s%*s", name, "queue", held, "")
	for _, c := range columns {
		heading += fmt.Sprintf("%*s", cell, c.name)
	}
	rows := []string{heading + "  limits"}
	for _, q := range queues[min(l.skip, max(len(queues)-1, 0)):] {
		row := fmt.Sprintf("%-*s", name, cut(plain(q.Queue), name))
		if q.Paused == 1 {
			row += "  paused"
		} else {
			row += strings.Repeat(" ", held)
		}
		for _, c := range columns {
			row += fmt.Sprintf("%*s", cell, c.of(q))
		}
		rows = append(rows, row+"  "+limitsText(q))
	}
	return rows
}

func dueRows(v view) []string {
	rows := []string{"next deadlines"}
	for _, d := range v.next {
		remaining := d.Deadline.Sub(v.due.Now)
		word := "in " + spanText(remaining)
		if remaining <= 0 {
			word = spanText(-remaining) + " late"
		}
		rows = append(rows, fmt.Sprintf("%-14s %-9s %-16s %s", word, plain(string(d.Status)), cut(app.OrDash(plain(d.Queue)), 16), cut(plain(d.ID), 64)))
	}
	return rows
}

func workerRows(v view) []string {
	rows := []string{"workers"}
	for _, w := range v.workers {
		rows = append(rows, fmt.Sprintf("%-24s %-13s %9s  %s", cut(plain(w.Worker), 24), cut(stateText(w, plain), 13), loadText(w), queuesText(w, plain)))
	}
	return rows
}

// text returns lines as a terminal in raw mode shows them from its upper left corner on.
func text(lines []string) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	return b.String()
}
