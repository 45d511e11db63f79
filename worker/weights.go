package worker

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/curfew-dev/curfew/queue"
)

// menu is what a worker takes from, and in which proportion.
type menu struct {
	names   []string
	weights []float64 // nil: strict order
	sum     float64
}

func newMenu(c *Config) menu {
	if len(c.Strict) > 0 {
		return menu{names: slices.Clone(c.Strict)}
	}
	var m menu
	for name := range c.Queues {
		m.names = append(m.names, name)
	}
	slices.Sort(m.names)
	for _, name := range m.names {
		m.weights = append(m.weights, float64(c.Queues[name]))
		m.sum += float64(c.Queues[name])
	}
	return m
}

// quotas divides n slots among the queues for one trip. random gives numbers of
// [0, 1).
//
// Each queue gets its share rounded down or up so that on average it gets exactly
// its share, even when n is 1: one random offset lays a ruler of n marks over the
// weights. The order is random by weight too, since it decides who gets the slots
// that others leave.
func (m *menu) quotas(n int, random func() float64) []queue.Quota {
	quotas := make([]queue.Quota, len(m.names))
	if m.weights == nil || len(m.names) == 1 {
		for i, name := range m.names {
			quotas[i] = queue.Quota{Queue: name, N: n}
		}
		return quotas
	}

	keys := make([]float64, len(m.names))
	offset, upTo, marks := random(), 0.0, 0
	for i, name := range m.names {
		upTo += m.weights[i]
		end := int(upTo/m.sum*float64(n) + offset)
		if i == len(m.names)-1 {
			end = n // whatever the rounding of sums came to
		}
		quotas[i] = queue.Quota{Queue: name, N: max(end-marks, 0)}
		marks = max(end, marks)
		// The smallest of exponential times comes first in proportion to its rate.
		keys[i] = -math.Log(1-random()) / m.weights[i]
	}
	order := make([]int, len(quotas))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	shuffled := make([]queue.Quota, len(quotas))
	for to, from := range order {
		shuffled[to] = quotas[from]
	}
	return shuffled
}

// draw is quotas with the process's own randomness.
func (m *menu) draw(n int) []queue.Quota { return m.quotas(n, rand.Float64) }
