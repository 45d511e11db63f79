package queue

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/curfew-dev/curfew/refusal"
)

// gate lets concurrent enqueues of one process travel together: while one trip is
// under way the next ones gather. There is no timer, so a lone call is not delayed,
// and the goroutine that makes the trips lives only as long as somebody waits.
type gate struct {
	mu      sync.Mutex
	waiting []*passenger
	moving  int // trips under way
}

// passenger is one task on its way.
type passenger struct {
	task    *Task
	id      string
	receipt Receipt
	err     error
	done    chan struct{} // closed when receipt and err are final
}

// board adds a passenger, and sets trips going if none is under way. A trip does
// not end with the context of one of its passengers: the others are still on it.
func (g *gate) board(p *passenger, trip func(context.Context, []*passenger)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, p)
	// A second trip starts once enough have gathered to be worth one, so that Redis
	// works while the answers of the first are read. (Eight: with four, 16 goroutines make
	// a quarter fewer calls a second; with twelve and more no more.)
	if g.moving == 2 || g.moving == 1 && len(g.waiting) < 8 {
		return
	}
	g.moving++
	go func() {
		for crew := g.depart(); len(crew) > 0; crew = g.depart() {
			trip(context.Background(), crew)
			for _, p := range crew {
				close(p.done)
			}
			// Those that have their answers go first: what they hand over next travels along.
			runtime.Gosched()
		}
	}()
}

// depart takes who travels now: as many as a call may carry.
func (g *gate) depart() []*passenger {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for n < len(g.waiting) && n < maxList && (n == 0 || size+g.waiting[n].task.size() <= maxCall) {
		size += g.waiting[n].task.size()
		n++
	}
	crew := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	if n == 0 {
		g.moving--
	}
	return crew
}

// abandon gives who has not departed the error of those who did. One whose trip was
// never made was certainly not stored, whatever the error says of the others.
func (g *gate) abandon(err error) {
	for _, p := range g.waiting {
		p.err = fmt.Errorf("%w: not sent, since what went before it failed: %v", refusal.ErrUnavailable, err)
	}
}

// leave takes back a passenger that has not departed yet.
func (g *gate) leave(p *passenger) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.waiting {
		if other == p {
			g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
			return true
		}
	}
	return false
}
