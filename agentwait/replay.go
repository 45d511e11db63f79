package agentwait

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/curfew-dev/curfew/queue"
)

// newDigest begins a digest of what a replay must do again.
func newDigest() hash.Hash { return sha1.New() }

// digestChild adds what must be the same of a child.
func digestChild(h hash.Hash, t *queue.Task) {
	fmt.Fprintf(h, "%s\n%s\n%s\n%d\n", t.ID, t.Kind, t.Queue, len(t.Payload))
	h.Write(t.Payload)
}

// digestOf is the word that stands for a wait: its mode, members, and the children that
// were made for it; then its policy.
func (a *Agent) digestOf(w *queue.Wait) string {
	h := newDigest()
	fmt.Fprintf(h, "%s %d %x\n", w.Mode, w.Need, a.made.Sum(nil))
	for _, m := range w.Members {
		fmt.Fprintln(h, m.ID)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]) + "-" + policyOf(w)
}

// policyOf is what must be the same of a wait's policy: by it the answer that is stored
// is read. The limits are not among it: they are tuned while agents run.
func policyOf(w *queue.Wait) string {
	masks := newDigest()
	for _, m := range w.Members {
		fmt.Fprintln(masks, cmp.Or(m.Mask, w.Mask))
	}
	return fmt.Sprintf("%t-%t-%x", w.KeepPending, w.CancelLosers, masks.Sum(nil)[:4])
}

// policyDiffers names in what the policy of a wait differs from that of its stored digest,
// if nothing else does.
func policyDiffers(was, is string) string {
	var names []string
	old, now := strings.Split(was, "-"), strings.Split(is, "-")
	if len(old) != len(now) || old[0] != now[0] {
		return ""
	}
	for i, name := range []string{"KeepPending", "Losers", "ContinueOn or SkipCancelled"} {
		if old[i+1] != now[i+1] {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// diverged is the error of a replay that came to something else than the run before.
func (a *Agent) diverged(was, is string) error {
	a.gone = &DivergedError{Agent: a.job.ID, Was: was, Now: is}
	return a.gone
}

// waitDiverged says in what a wait differs from the one that was here before. If that is
// not the wait itself it is one of the children that were made since the wait before.
func (a *Agent) waitDiverged(was, digest string, w *queue.Wait) error {
	if was != w.Label {
		return a.diverged(what(was), fmt.Sprintf("a wait for %s", w.Label))
	}
	if names := policyDiffers(digest, w.Digest); names != "" {
		return a.diverged(what(was), fmt.Sprintf("the same wait with another policy (%s)", names))
	}
	var names []string
	for i := range a.since {
		r, err := a.q.Get(a, a.since[i].ID)
		if err != nil {
			return a.diverged(fmt.Sprintf("no child %s before its wait for %s", a.since[i].ID, w.Label), describe(&a.since[i]))
		}
		if now := describe(&a.since[i]); now != describeRecord(r) {
			return a.diverged(describeRecord(r), now)
		}
		names = append(names, a.since[i].ID)
	}
	return a.diverged(fmt.Sprintf("more children before its wait for %s", w.Label), "only "+clip(strings.Join(names, " ")))
}

// childDiverged says in what a child differs from the one of its name that is there.
func (a *Agent) childDiverged(t *queue.Task) error {
	was := "another child of the name " + t.ID
	if r, err := a.q.Get(a, t.ID); err == nil {
		was = describeRecord(r)
	}
	return a.diverged(was, describe(t))
}

func describe(t *queue.Task) string {
	line := t.Queue
	if line == "" {
		line = "default"
	}
	return fmt.Sprintf("child %s of kind %s in queue %s with payload %s", t.ID, t.Kind, line, clip(string(t.Payload)))
}

func describeRecord(r *queue.Record) string {
	return describe(&queue.Task{ID: r.ID, Kind: r.Kind, Queue: r.Queue, Payload: r.Payload})
}

func clip(s string) string {
	if len(s) > 200 {
		return fmt.Sprintf("%q…", s[:200])
	}
	return fmt.Sprintf("%q", s)
}

// what says an entry of the journal to people.
func what(entry string) string {
	if o, ok := queue.ReadWaitOutcome(entry); ok {
		return "a wait for " + o.Label
	}
	if r, ok := readRefusal(entry); ok {
		return r.what()
	}
	line, _, _ := strings.Cut(entry, "\n")
	kind, name, _ := strings.Cut(line, " ")
	switch kind {
	case "step", "failed":
		return fmt.Sprintf("the step %q", name)
	case "now", "rand", "cancel":
		return "a call of " + strings.ToUpper(kind[:1]) + kind[1:]
	}
	return "a wait for " + line
}

// next is the number of the first entry that this run has not come to, 0 if there is none.
func (a *Agent) next() (first int64) {
	for n := range a.memory.Journal {
		if n > a.entry && (first == 0 || n < first) {
			first = n
		}
	}
	return first
}

// replaying tells whether an earlier run came further than this one has.
func (a *Agent) replaying() bool { return a.next() != 0 }

// leftOver is an error if the replay ended before it came to all that was done before.
func (a *Agent) leftOver() error {
	next := a.next()
	if next == 0 {
		return nil
	}
	return a.diverged(what(a.memory.Journal[next]), "come to its end before that")
}

// remembered is the next entry of the journal, if this run is a replay of one that came
// so far.
func (a *Agent) remembered() (number int64, entry string, ok bool) {
	a.entry++
	entry, ok = a.memory.Journal[a.entry]
	return a.entry, entry, ok
}

// record keeps an entry, to be written with the next call.
func (a *Agent) record(number int64, text []byte) {
	a.note.Entries = append(a.note.Entries, queue.Entry{Number: number, Text: text})
	if len(a.note.Entries) >= maxEntries && a.gone == nil {
		a.write() // who goes on without is told by the next call
	}
}

// maxEntries is about how many entries travel with a call.
const maxEntries = 400

// write writes what is to be remembered now. A checkpoint counts the children that were
// made before it, so they must be there.
func (a *Agent) write() error {
	if a.gone != nil {
		return a.gone
	}
	if a.note.Checkpoint != nil && len(a.unsent) > 0 {
		if err := a.Start(); err != nil {
			return err
		}
	}
	if a.note.Checkpoint == nil && len(a.note.Entries) == 0 {
		return nil
	}
	if err := a.remember(a, a.note); err != nil {
		return err
	}
	a.note = queue.Note{}
	return nil
}

// writeEntries writes entries ahead of a checkpoint that waits for children to be made.
// They are written again with it, since it takes the place of all there is.
func (a *Agent) writeEntries() error {
	if a.note.Checkpoint == nil {
		return a.write()
	}
	if len(a.note.Entries) == 0 {
		return nil
	}
	return a.remember(a, queue.Note{Entries: a.note.Entries})
}

func (a *Agent) remember(ctx context.Context, n queue.Note) error {
	if err := a.q.Attempts().Remember(ctx, a.job.ID, a.job.Epoch, a.job.Worker, n); err != nil {
		return a.trouble(err)
	}
	return nil
}
