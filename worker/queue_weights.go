package worker

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/curfew-dev/curfew/internal/claim"
)

// queueWeights holds the queues that a worker takes tasks from, with their weights.
type queueWeights struct {
	names   []string
	weights []float64 // nil: strict order
	sum     float64
}

func newQueueWeights(c *Config) queueWeights {
	if len(c.Strict) > 0 {
		return queueWeights{names: slices.Clone(c.Strict)}
	}
	var q queueWeights
	for name := range c.Queues {
		q.names = append(q.names, name)
	}
	slices.Sort(q.names)
	for _, name := range q.names {
		q.weights = append(q.weights, float64(c.Queues[name]))
		q.sum += float64(c.Queues[name])
	}
	return q
}

// randomQuotas divides the n slots of a fetch among the queues.
func (q *queueWeights) randomQuotas(n int) []claim.Quota { return q.quotas(n, rand.Float64) }

// quotas divides n slots among the queues. random returns numbers in [0, 1).
//
// Redis serves the first queue of the list first, and gives it the slots that other queues leave
// free. So the order must be random by weight too.
func (q *queueWeights) quotas(n int, random func() float64) []claim.Quota {
	if q.weights == nil || len(q.names) == 1 {
		return q.allToEach(n)
	}
	shares := q.shares(n, random)
	quotas := make([]claim.Quota, len(q.names))
	for position, i := range q.order(random) {
		quotas[position] = claim.Quota{Queue: q.names[i], N: shares[i]}
	}
	return quotas
}

// allToEach offers all slots to each queue, so that only the order decides.
func (q *queueWeights) allToEach(n int) []claim.Quota {
	quotas := make([]claim.Quota, len(q.names))
	for i, name := range q.names {
		quotas[i] = claim.Quota{Queue: name, N: n}
	}
	return quotas
}

// shares divides n slots by weight. Each queue gets its share rounded down or up at random, so that
// it gets exactly its share on average, even when n is 1. It puts the weights side by side on a line.
// The line has n marks at equal distances; the place of the first mark is random. A queue gets as many
// slots as there are marks on its part of the line.
func (q *queueWeights) shares(n int, random func() float64) []int {
	shares := make([]int, len(q.names))
	offset, upTo, marks := random(), 0.0, 0
	for i, weight := range q.weights {
		upTo += weight
		end := int(upTo/q.sum*float64(n) + offset)
		if i == len(shares)-1 {
			end = n // rounding errors of the sums must not lose a slot
		}
		shares[i] = max(end-marks, 0)
		marks = max(end, marks)
	}
	return shares
}

// order returns the queues in random order by weight. Each queue draws an exponentially distributed
// time with its weight as rate, and the times are sorted. So the probability of being first is
// proportional to the weight.
func (q *queueWeights) order(random func() float64) []int {
	order, times := make([]int, len(q.names)), make([]float64, len(q.names))
	for i, weight := range q.weights {
		order[i] = i
		times[i] = -math.Log(1-random()) / weight
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(times[a], times[b]) })
	return order
}
