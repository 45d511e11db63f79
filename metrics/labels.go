package metrics

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// Other is the label of all queues and kinds that have no label of their own. It is not the name of
// any queue or kind.
const Other = inspect.OtherKinds

// labelSet holds the queues, the kinds, and the pairs of both that have their own labels.
type labelSet struct {
	queues, kinds map[string]bool
	pairs         map[pair]bool
	nodes         map[node]bool
	folded        int // number of pairs that have the label Other, as queue or as kind
}

type pair struct{ queue, kind string }

// newLabelSet chooses the labels. The choice depends only on the values in Redis, so that all
// exporters make the same choice.
func newLabelSet(figures []inspect.KindFigures, lines []queue.QueueStats, c Config) labelSet {
	queues, kinds, pairs, nodes := map[string]int64{}, map[string]int64{}, map[pair]int64{}, map[node]int64{}
	for _, s := range lines {
		queues[s.Queue] += s.Enqueued
	}
	for _, f := range figures {
		n := tasksOf(f)
		queues[f.Queue] += n
		if f.Kind != inspect.OtherKinds {
			kinds[f.Kind] += n
			pairs[pair{f.Queue, f.Kind}] += n
		}
	}
	for _, f := range figures {
		for _, nodeFigures := range f.Nodes {
			if flow, isFlow := flowOf(f.Kind); isFlow && nodeFigures.Node != inspect.OtherKinds {
				nodes[node{flow, nodeFigures.Node}] += ended(nodeFigures.Ends)
			}
		}
	}
	n := labelSet{largest(queues, c.MaxQueues, cmp.Compare), largest(kinds, c.MaxKinds, cmp.Compare), largest(pairs, c.MaxPairs, pair.compare),
		largest(nodes, c.MaxNodes, node.compare), 0}
	for p := range pairs {
		if line, kind := n.pair(p.queue, p.kind); line != p.queue || kind != p.kind {
			n.folded++
		}
	}
	return n
}

// tasksOf returns the number of creations and ends of a kind and queue, by which kinds are chosen.
func tasksOf(f inspect.KindFigures) (n int64) {
	for _, e := range f.Enqueued {
		n += e.Count
	}
	return n + ended(f.Ends)
}

func ended(ends []inspect.Ends) (n int64) {
	for _, e := range ends {
		n += e.Count
	}
	return n
}

// largest returns the n names with the largest counts. It compares counts by their number of binary
// digits, and names with equally many digits by compare. So a name loses its place only when the
// count of another doubles, or a new name appears.
func largest[N comparable](counts map[N]int64, n int, compare func(a, b N) int) map[N]bool {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b N) int {
		return cmp.Or(cmp.Compare(magnitude(counts[b]), magnitude(counts[a])), compare(a, b))
	})
	chosen := map[N]bool{}
	for _, name := range names[:min(n, len(names))] {
		chosen[name] = true
	}
	return chosen
}

func magnitude(n int64) int { return bits.Len64(uint64(max(n, 0))) }

// queue returns the label of a queue.
func (n labelSet) queue(name string) string {
	if n.queues[name] {
		return name
	}
	return Other
}

// pair returns the labels of a queue and a kind.
func (n labelSet) pair(queue, kind string) (string, string) {
	if !n.kinds[kind] || n.queues[queue] && !n.pairs[pair{queue, kind}] {
		kind = Other
	}
	return n.queue(queue), kind
}
