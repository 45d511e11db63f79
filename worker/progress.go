package worker

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/clip"
)

// MaxProgress is the greatest number of bytes of a note that [Progress] sends.
const MaxProgress = 1 << 10

// Progress sets a note about the handler's progress, for example "50%" or "page 7 of 12". The
// worker's next heartbeat (Config.Beat) writes the note to the task's record, as
// queue.Record.Progress. Only the newest note is sent. Progress makes no call to Redis. Any
// goroutine can call it at any time.
//
// A note longer than MaxProgress bytes is cut between two characters. An empty note is
// ignored. A note after the attempt's last heartbeat is not written. If ctx is not the context of a
// handler, Progress does nothing. It panics if ctx is nil.
//
// Progress is for people to read. It moves no deadline, and the next attempt does not get the note.
func Progress(ctx context.Context, note string) {
	if ctx == nil {
		panic("worker: Progress needs the context of the handler")
	}
	if a, ok := ctx.Value(infoKey{}).(*attempt); ok && note != "" {
		note = cutNote(note)
		a.progress.newest.Store(&note)
	}
}

// cutNote cuts a note to the length that a record keeps. It copies a note that it cuts, because a
// part of a long string would keep the whole in memory.
func cutNote(note string) string {
	if len(note) <= MaxProgress {
		return note
	}
	return strings.Clone(clip.Bytes(note, MaxProgress))
}

// progress holds the notes of an attempt.
type progress struct {
	newest atomic.Pointer[string]
	sent   string // the last note of a heartbeat that was answered; guarded by the partition's mu
}

// unsent returns the newest note if it was not sent yet, or "".
func (p *progress) unsent() string {
	if newest := p.newest.Load(); newest != nil && *newest != p.sent {
		return *newest
	}
	return ""
}

// markSent records that a heartbeat with this note was answered. Until then each heartbeat sends the
// note again.
func (p *progress) markSent(note string) {
	if note != "" {
		p.sent = note
	}
}

// heldClaim returns the attempt in the form that a heartbeat sends.
func (a *attempt) heldClaim() claim.Held {
	return claim.Held{ID: a.claim.ID, Epoch: a.claim.Epoch, Progress: a.progress.unsent()}
}

// progressSent records that a heartbeat with these claims was answered.
func (p *partition) progressSent(sent []claim.Held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range sent {
		if a := p.held[claimKey{h.ID, h.Epoch}]; a != nil {
			a.progress.markSent(h.Progress)
		}
	}
}
