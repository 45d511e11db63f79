package worker

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/curfew-dev/curfew/internal/claim"
)

func weighted(weights map[string]int) queueWeights { return newQueueWeights(&Config{Queues: weights}) }

func TestQuotas(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)).Float64

	t.Run("strict order offers every slot to every queue, in order", func(t *testing.T) {
		m := newQueueWeights(&Config{Strict: []string{"high", "low"}})
		got := m.quotas(5, random)
		want := []claim.Quota{{Queue: "high", N: 5}, {Queue: "low", N: 5}}
		if !slices.Equal(got, want) {
			t.Fatalf("quotas = %v, want %v", got, want)
		}
	})

	t.Run("a single queue gets all slots whatever its weight", func(t *testing.T) {
		m := weighted(map[string]int{"only": 3})
		if got, want := m.quotas(5, random), []claim.Quota{{Queue: "only", N: 5}}; !slices.Equal(got, want) {
			t.Fatalf("quotas = %v, want %v", got, want)
		}
	})

	t.Run("quotas gives out exactly n slots, and lists every queue", func(t *testing.T) {
		for range 10_000 {
			weights := map[string]int{"a": 1 + rand.IntN(9), "b": 1 + rand.IntN(9), "c": 1 + rand.IntN(1000)}
			m, n := weighted(weights), rand.IntN(60)
			names, sum := []string{}, 0
			for _, quota := range m.quotas(n, random) {
				names, sum = append(names, quota.Queue), sum+quota.N
				if quota.N < 0 {
					t.Fatalf("weights %v, %d slots: a quota of %d", weights, n, quota.N)
				}
			}
			slices.Sort(names)
			if sum != n || !slices.Equal(names, []string{"a", "b", "c"}) {
				t.Fatalf("weights %v, %d slots: quotas of %d slots for %v", weights, n, sum, names)
			}
		}
	})

	t.Run("each quota differs from the queue's share by less than one slot", func(t *testing.T) {
		m := weighted(map[string]int{"a": 6, "b": 3, "c": 1})
		for range 1000 {
			for _, quota := range m.quotas(17, random) {
				share := map[string]float64{"a": 10.2, "b": 5.1, "c": 1.7}[quota.Queue]
				if math.Abs(float64(quota.N)-share) >= 1 {
					t.Fatalf("%s got %d slots, and its share is %.1f", quota.Queue, quota.N, share)
				}
			}
		}
	})
}

func TestOneSlotIsFairOverTime(t *testing.T) {
	m := weighted(map[string]int{"high": 6, "mid": 3, "low": 1})
	random := rand.New(rand.NewPCG(3, 4)).Float64
	const draws = 100_000
	slot, first := map[string]float64{}, map[string]float64{}
	for range draws {
		quotas := m.quotas(1, random)
		first[quotas[0].Queue]++
		for _, quota := range quotas {
			slot[quota.Queue] += float64(quota.N)
		}
	}
	for name, want := range map[string]float64{"high": 0.6, "mid": 0.3, "low": 0.1} {
		if got := slot[name] / draws; math.Abs(got-want) > 0.01 {
			t.Errorf("%s got %.3f of the slots, want %.1f", name, got, want)
		}
		if got := first[name] / draws; math.Abs(got-want) > 0.01 {
			t.Errorf("%s came first in %.3f of the draws, want %.1f", name, got, want)
		}
	}
}
