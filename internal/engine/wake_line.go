package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// WakeLine shares one connection between the workers of a process that wait for wake tokens of the
// same queues of a partition. One worker at a time waits for Redis, and the others wait for their
// turn.
type WakeLine struct {
	lines *wakeLines
	name  string
	open  int           // workers that have not closed it; guarded by lines.mu
	turn  chan struct{} // held by the worker that waits for Redis
	wait  *ListWait
	pause time.Duration // after the newest of consecutive failures; 0 if the last call succeeded
}

// WakeLine returns the wake line of these queues of a partition. Close it when the worker ends.
func (e *Engine) WakeLine(partition int, queues []string) *WakeLine {
	return e.wakeLines.enter(e, partition, queues)
}

// Await waits up to d for a wake token of one of the queues, and reports whether it got one. A d
// below a second counts as a second. A token means that a queue has a task, and that no other worker
// was woken for it. So a worker that gets the token must fetch. Another worker can have taken the
// task by then. If there are more tasks, the fetch leaves another token.
//
// A token can be lost, so a worker also fetches without one after some time (claim.Reply.Look). A worker that waits for its
// turn waits longer than d, while the others fetch.
//
// When ctx ends, Await returns its cause, and no token is lost.
func (l *WakeLine) Await(ctx context.Context, d time.Duration) (bool, error) {
	if err := Given(ctx); err != nil {
		return false, refusal.Failed("await work", "", err)
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return false, refusal.Failed("await work", "", l.wait.e.InVain(ctx))
	}
	token, err := l.wait.Pop(ctx, d)
	if err == nil || ctx.Err() != nil {
		l.pause = 0
		return token, refusal.Failed("await work", "", err)
	}
	if errors.Is(err, refusal.ErrClosed) {
		return false, refusal.Failed("await work", "", err)
	}
	// The worker keeps its turn during the pause, because the next worker would get the same error.
	l.pause = min(max(2*l.pause, 50*time.Millisecond), time.Second)
	select {
	case <-time.After(l.pause):
	case <-ctx.Done():
	}
	return token, refusal.Failed("await work", "", err)
}

// Close leaves the line. The connection is closed when the last worker has left. Await must have
// returned.
func (l *WakeLine) Close() { l.lines.leave(l) }

// wakeLines holds the wake lines that the workers of this process use, by the keys of their queues.
type wakeLines struct {
	mu    sync.Mutex
	lines map[string]*WakeLine
}

func (w *wakeLines) enter(e *Engine, partition int, queues []string) *WakeLine {
	keys := make([]string, len(queues))
	for i, queue := range queues {
		keys[i] = e.WakeKey(partition, queue)
	}
	name := strings.Join(keys, " ")
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lines[name]
	if l == nil {
		l = &WakeLine{lines: w, name: name, turn: make(chan struct{}, 1), wait: e.NewListWait(partition, keys)}
		if w.lines == nil {
			w.lines = map[string]*WakeLine{}
		}
		w.lines[name] = l
	}
	l.open++
	return l
}

func (w *wakeLines) leave(l *WakeLine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.open--; l.open == 0 {
		delete(w.lines, l.name)
		l.wait.Close()
	}
}
