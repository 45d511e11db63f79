package worker

import (
	"context"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/queue"
)

// Progress says how far the handler is: "50%", "page 7 of 12", or whatever its readers
// understand. The worker's next heartbeat (Config.Beat) writes the note to the task's
// record, and queue.Record has it as Progress. Only the newest note is sent. Progress
// makes no call to Redis. Any goroutine may call it at any time.
//
// A note may have queue.MaxProgress bytes; a longer one is cut between two characters. An
// empty one is ignored. A note after the attempt's last heartbeat is not written. Outside
// of a handler Progress does nothing.
//
// Progress is for people to read. It moves no deadline, and the next attempt does not
// see it.
func Progress(ctx context.Context, note string) {
	if ctx == nil {
		panic("worker: Progress needs the context of the handler")
	}
	if a, ok := ctx.Value(infoKey{}).(*attempt); ok && note != "" {
		note = cutNote(note)
		a.progress.newest.Store(&note)
	}
}

// cutNote shortens a note to what a record keeps. It copies the note, so that the rest of
// a long text is not kept in memory.
func cutNote(note string) string {
	if len(note) <= queue.MaxProgress {
		return note
	}
	end := queue.MaxProgress
	for end > queue.MaxProgress-utf8.UTFMax && !utf8.RuneStart(note[end]) {
		end--
	}
	return strings.Clone(note[:end])
}

// progress has the notes of an attempt.
type progress struct {
	newest atomic.Pointer[string]
	sent   string // the newest of a heartbeat that was answered; guarded by the partition's mu
}

// unsent returns the newest note, or "" if it was sent.
func (p *progress) unsent() string {
	if newest := p.newest.Load(); newest != nil && *newest != p.sent {
		return *newest
	}
	return ""
}

// markSent notes that a heartbeat with a note was answered. Until then each heartbeat
// sends it again.
func (p *progress) markSent(note string) {
	if note != "" {
		p.sent = note
	}
}

// heldClaim returns what a heartbeat sends of the attempt.
func (a *attempt) heldClaim() queue.Held {
	return queue.Held{ID: a.claim.ID, Epoch: a.claim.Epoch, Progress: a.progress.unsent()}
}

// progressSent marks the notes of a heartbeat that was answered.
func (p *partition) progressSent(sent []queue.Held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range sent {
		if a := p.held[claimKey{h.ID, h.Epoch}]; a != nil {
			a.progress.markSent(h.Progress)
		}
	}
}
