package worker

import (
	"context"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/queue"
)

// Progress says how far the handler is: "50%", "page 7 of 12", whatever its readers
// understand. The worker's next heartbeat (Config.Beat) puts it on the task's record,
// where queue.Record has it as Progress; of several notes until then only the newest
// is told. It costs no trip, and may be called from any goroutine as often as one
// likes.
//
// A note has up to queue.MaxProgress bytes; what is longer is cut between two
// characters. An empty one says nothing. What is said after the last heartbeat of an
// attempt is not kept: that it has ended says more. Outside of a handler it does nothing.
//
// It is to be looked at, and nothing depends on it: no deadline moves, and the next
// attempt is not told.
func Progress(ctx context.Context, note string) {
	if a, ok := ctx.Value(infoKey{}).(*attempt); ok && note != "" {
		note = cut(note)
		a.progress.newest.Store(&note)
	}
}

// cut shortens a note to what a record keeps. It is copied, so that the rest of a long
// text is not kept in memory with it.
func cut(note string) string {
	if len(note) <= queue.MaxProgress {
		return note
	}
	end := queue.MaxProgress
	for end > queue.MaxProgress-utf8.UTFMax && !utf8.RuneStart(note[end]) {
		end--
	}
	return strings.Clone(note[:end])
}

// progress is what a handler says of how far it is.
type progress struct {
	newest atomic.Pointer[string]
	told   string // the newest that a heartbeat was answered for; guarded by the lane
}

// news is what has not been told yet, "" if there is nothing new.
func (p *progress) news() string {
	if newest := p.newest.Load(); newest != nil && *newest != p.told {
		return *newest
	}
	return ""
}

// heard notes that a heartbeat with a note was answered. One that was not says it again.
func (p *progress) heard(note string) {
	if note != "" {
		p.told = note
	}
}

// saying is what a heartbeat says of the attempt.
func (a *attempt) saying() queue.Held {
	return queue.Held{ID: a.claim.ID, Epoch: a.claim.Epoch, Progress: a.progress.news()}
}

// heard notes what a heartbeat that was answered has said.
func (l *lane) heard(said []queue.Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range said {
		if a := l.held[hold{s.ID, s.Epoch}]; a != nil {
			a.progress.heard(s.Progress)
		}
	}
}
