package inspect

import (
	"cmp"
	"slices"

	"github.com/curfew-dev/curfew/queue"
)

func newFigures(kind, name string) *KindFigures {
	return &KindFigures{Kind: kind, Queue: name, Duration: newHistogram(timeBounds), Timed: newHistogram(timeBounds),
		Waiting: newHistogram(timeBounds), Lag: newHistogram(lagBounds), Share: newHistogram(shareBounds),
		LagBy: map[queue.TimeoutType]Histogram{}, WaitTimeouts: map[string]int64{}}
}

// add adds the value of a field, whose name is passed without the queue (docs/reference/keys.md,
// Figures). It ignores the fields of a newer version.
func (f *KindFigures) add(words []string, n int64) {
	last := words[len(words)-1]
	switch figure := words[0]; {
	case figure == "ended" && len(words) > 1:
		f.Ends = addEnds(f.Ends, words[1:], n)
	case figure == "enqueued" && len(words) == 3 && (last == "now" || last == "later"):
		f.addEnqueued(Enqueued{Source(words[1]), last == "later", n})
	case figure == "duration" && len(words) == 2:
		f.Duration.add(last, n)
	case figure == "timed" && len(words) == 2:
		f.Duration.add(last, n)
		f.Timed.add(last, n)
	case figure == "waiting" && len(words) == 2:
		f.Waiting.add(last, n)
	case figure == "lag" && len(words) == 2:
		f.addLag("", last, n)
	case figure == "lag" && len(words) == 3:
		f.addLag(queue.TimeoutType(words[1]), last, n)
	case figure == "share" && len(words) == 2:
		f.Share.add(last, n)
	case figure == "woken" && len(words) == 4:
		f.addWakeup(queue.Mode(words[1]), words[2], last, n)
	case figure == "retried" && last == "timeout":
		f.AttemptTimeouts += n
	case figure == "wait" && len(words) == 3 && words[1] == "timeout":
		f.WaitTimeouts[last] += n
	case figure == "late" && len(words) == 1:
		f.Late += n
	case figure == "node" && len(words) > 3 && words[2] == "ended":
		node := f.node(words[1])
		node.Ends = addEnds(node.Ends, words[3:], n)
	case figure == "node" && len(words) == 4 && words[2] == "retried" && last == "timeout":
		f.node(words[1]).AttemptTimeouts += n
	}
}

// node returns the figures of a node.
func (f *KindFigures) node(name string) *NodeFigures {
	i, exists := slices.BinarySearchFunc(f.Nodes, name, func(n NodeFigures, name string) int { return cmp.Compare(n.Node, name) })
	if !exists {
		f.Nodes = slices.Insert(f.Nodes, i, NodeFigures{Node: name})
	}
	return &f.Nodes[i]
}

// addEnds adds n equal ends. words are their status, reason, timeout type and policy; the last ones
// can be missing.
func addEnds(list []Ends, words []string, n int64) []Ends {
	words = append(slices.Clone(words), "", "", "")
	e := Ends{queue.Status(words[0]), queue.Reason(words[1]), queue.TimeoutType(words[2]), words[3], n}
	for i := range list {
		if o := &list[i]; o.Status == e.Status && o.Reason == e.Reason && o.TimeoutType == e.TimeoutType && o.Policy == e.Policy {
			o.Count += e.Count
			return list
		}
	}
	return append(list, e)
}

func (f *KindFigures) addEnqueued(e Enqueued) {
	for i := range f.Enqueued {
		if o := &f.Enqueued[i]; o.Source == e.Source && o.Later == e.Later {
			o.Count += e.Count
			return
		}
	}
	f.Enqueued = append(f.Enqueued, e)
}

func (f *KindFigures) addLag(timeout queue.TimeoutType, bucket string, n int64) {
	h, exists := f.LagBy[timeout]
	if !exists {
		h = newHistogram(lagBounds)
	}
	h.add(bucket, n)
	f.LagBy[timeout] = h
	f.Lag.add(bucket, n)
}

func (f *KindFigures) addWakeup(mode queue.Mode, reason, bucket string, n int64) {
	for i := range f.Wakeups {
		if o := &f.Wakeups[i]; o.Mode == mode && o.Reason == reason {
			o.Lag.add(bucket, n)
			return
		}
	}
	w := Wakeups{mode, reason, newHistogram(lagBounds)}
	w.Lag.add(bucket, n)
	f.Wakeups = append(f.Wakeups, w)
}

func (f *KindFigures) sort() {
	slices.SortFunc(f.Enqueued, func(a, b Enqueued) int {
		if a.Source == b.Source && a.Later != b.Later {
			return map[bool]int{false: -1, true: 1}[a.Later]
		}
		return cmp.Compare(a.Source, b.Source)
	})
	sortEnds(f.Ends)
	for _, n := range f.Nodes {
		sortEnds(n.Ends)
	}
	slices.SortFunc(f.Wakeups, func(a, b Wakeups) int { return cmp.Or(cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Reason, b.Reason)) })
}

func sortEnds(ends []Ends) {
	slices.SortFunc(ends, func(a, b Ends) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.TimeoutType, b.TimeoutType),
			cmp.Compare(a.Policy, b.Policy))
	})
}
