package deploy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/metrics"
)

// find returns the row of a name in the table. The name has the default prefix, and can be that of a series of a histogram. The name of a
// histogram itself is that of its native buckets, which those that are read from Redis do not have.
func find(name string) (metrics.Metric, bool) {
	name = strings.TrimPrefix(name, metrics.DefaultPrefix)
	all := metrics.All()
	at := slices.IndexFunc(all, func(m metrics.Metric) bool {
		if m.Type != metrics.Histogram {
			return m.Name == name
		}
		if m.Name == name {
			return m.Source != metrics.FromNamespace
		}
		return slices.Contains([]string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}, name)
	})
	if at < 0 {
		return metrics.Metric{}, false
	}
	return all[at], true
}

// token splits PromQL: strings, names, durations and numbers, and single characters.
var token = regexp.MustCompile(`"[^"]*"|[a-zA-Z_:$][\w:]*|[0-9][0-9a-z.]*|[=!<>~]+|\S`)

// words are names of PromQL that expressions may use.
var words = []string{"max", "sum", "by", "on", "and", "or", "unless", "offset", "time", "rate", "increase", "avg_over_time", "max_over_time", "abs", "absent_over_time", "histogram_quantile"}

// expression is PromQL that is checked from left to right. open holds, for each parenthesis that is open, what stands before it.
type expression struct {
	tokens []string
	at     int
	open   []group
	faults []string
	names  []string // metrics of the table that were found
}

// group is a function or an aggregation, with the labels that it keeps.
type group struct {
	word string
	keep []string
}

// faults returns what is wrong with an expression: names and labels that the table does not have, a total that is not in a rate, and
// values of all exporters that are summed. It also returns the names of metrics in it, without the prefix.
func faults(text string) (found, names []string) {
	e := &expression{tokens: token.FindAllString(text, -1)}
	for ; e.at < len(e.tokens); e.at++ {
		e.step()
	}
	if len(e.open) > 0 {
		e.fault("a ( is not closed")
	}
	return e.faults, e.names
}

func (e *expression) fault(format string, args ...any) {
	e.faults = append(e.faults, fmt.Sprintf(format, args...))
}

func (e *expression) peek(n int) string {
	if e.at+n < 0 || e.at+n >= len(e.tokens) {
		return ""
	}
	return e.tokens[e.at+n]
}

func (e *expression) step() {
	switch t := e.peek(0); {
	case t == "(":
		e.open = append(e.open, group{word: e.peek(-1)})
	case t == ")" && len(e.open) == 0:
		e.fault("a ) is not opened")
	case t == ")":
		e.open = e.open[:len(e.open)-1]
	case t == "[":
		e.list("]")
	case (t == "max" || t == "sum") && e.peek(1) == "by":
		e.at += 2
		keep := e.list(")")
		e.at++ // the parenthesis that opens
		e.open = append(e.open, group{t, keep})
	case t == "max" || t == "sum":
		e.fault("%s has no labels", t)
	case t == "on":
		e.at++
		e.list(")")
	case strings.HasPrefix(t, metrics.DefaultPrefix):
		e.metric(t)
	case t == "up":
		e.labels(metrics.Metric{}, "job")
	case regexp.MustCompile(`^[a-zA-Z_]`).MatchString(t) && !slices.Contains(words, t):
		e.fault("%s is unknown", t)
	}
}

// list skips to the token that ends a list, and returns the names before it.
func (e *expression) list(end string) (names []string) {
	for e.at++; e.at < len(e.tokens) && e.peek(0) != end; e.at++ {
		if e.peek(0) != "," {
			names = append(names, e.peek(0))
		}
	}
	return names
}

func (e *expression) metric(name string) {
	m, found := find(name)
	if !found {
		e.fault("%s is not in the table", name)
		return
	}
	e.names = append(e.names, m.Name)
	own := append([]string{"namespace"}, m.Labels...)
	if strings.HasSuffix(name, "_bucket") && m.Type == metrics.Histogram {
		own = append(own, "le")
	}
	before := slices.Clone(e.open)
	slices.Reverse(before)
	if in := len(before) > 0 && slices.Contains([]string{"rate", "increase"}, before[0].word); in != (m.Type != metrics.Gauge) {
		e.fault("%s is a %s, in a rate: %v", name, m.Type, in)
	}
	absent := len(before) > 0 && before[0].word == "absent_over_time"
	nearest := slices.IndexFunc(before, func(g group) bool { return g.word == "max" || g.word == "sum" })
	if m.Source == metrics.FromNamespace && !absent && (nearest < 0 || before[nearest].word != "max") {
		e.fault("%s is the same in all exporters, so max must be its nearest aggregation", name)
	}
	if m.Source != metrics.FromNamespace {
		own = append(own, "instance")
	}
	for _, g := range before {
		for _, label := range g.keep {
			if !slices.Contains(own, label) {
				e.fault("%s has no label %s, by which it is aggregated", name, label)
			}
		}
	}
	e.labels(m, own...)
}

// labels checks the labels in the braces that follow, if any.
func (e *expression) labels(m metrics.Metric, own ...string) {
	if e.peek(1) != "{" {
		return
	}
	e.at++
	for _, name := range e.list("}") {
		if regexp.MustCompile(`^[a-zA-Z_]`).MatchString(name) && !slices.Contains(own, name) {
			e.fault("%s has no label %s", m.Name, name)
		}
	}
}
