package agentwait

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/queue"
)

// newDigest returns an empty digest of the calls that a replay must make again.
func newDigest() hash.Hash { return sha1.New() }

// digestChild adds the fields of a child that must be the same in a replay.
func digestChild(h hash.Hash, t *queue.Task) {
	fmt.Fprintf(h, "%s\n%s\n%s\n%d\n", t.ID, t.Kind, t.Queue, len(t.Payload))
	h.Write(t.Payload)
}

// digestOf returns the word that identifies a wait. It covers the mode, the members, the children
// scheduled for the wait, and its policy.
func (a *Agent) digestOf(w *queue.Wait) string {
	h := newDigest()
	fmt.Fprintf(h, "%s %d %x\n", w.Mode, w.Need, a.made.Sum(nil))
	for _, m := range w.Members {
		fmt.Fprintln(h, m.ID)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]) + "-" + policyOf(w)
}

// policyOf returns the part of a wait's policy that must be the same in a replay, since the stored
// outcome is read with it. The limits are not part of it: they can be changed while agents run.
func policyOf(w *queue.Wait) string {
	masks := newDigest()
	for _, m := range w.Members {
		fmt.Fprintln(masks, cmp.Or(m.Mask, w.Mask))
	}
	return fmt.Sprintf("%t-%t-%x", w.KeepPending, w.CancelLosers, masks.Sum(nil)[:4])
}

// policyDiffers returns the names of the policies that differ between two digests of a wait. It returns
// "" if anything else differs.
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

// diverged ends the run, and returns the error of a replay that made another call than the run before.
func (a *Agent) diverged(was, is string) error {
	a.gone = &DivergedError{Agent: a.job.ID, Was: was, Now: is}
	return a.gone
}

// waitDiverged returns an error that says how a wait differs from the one of the earlier run. If the
// wait itself is the same, a child that was scheduled since the previous wait differs.
func (a *Agent) waitDiverged(was, digest string, w *queue.Wait) error {
	if was != w.Label {
		return a.diverged(what(was), fmt.Sprintf("a wait for %s", w.Label))
	}
	if names := policyDiffers(digest, w.Digest); names != "" {
		return a.diverged(what(was), fmt.Sprintf("the same wait with another policy (%s)", names))
	}
	return a.diverged(a.childrenDiffer(w))
}

// childrenDiffer describes the first child that was scheduled since the previous wait and differs from that
// of the earlier run.
func (a *Agent) childrenDiffer(w *queue.Wait) (was, is string) {
	var ids []string
	for i := range a.since {
		ids = append(ids, a.since[i].ID)
	}
	records, err := a.q.GetAll(a, ids)
	if err != nil {
		return "other children before its wait for " + w.Label, fmt.Sprintf("children that cannot be compared with them: %v", err)
	}
	for i, r := range records {
		if r == nil {
			return fmt.Sprintf("no child %s before its wait for %s", ids[i], w.Label), describe(&a.since[i])
		}
		if was, is := differ(r, &a.since[i]); was != is {
			return was, is
		}
	}
	was, is = "more children before its wait for "+w.Label+", or the same in another order", "none"
	if len(w.Members) > labelled {
		was += fmt.Sprintf(", or other members after the first %d", labelled)
	}
	if len(ids) > 0 {
		is = "only " + few(ids)
	}
	return was, is
}

// childDiverged returns an error that says how a child differs from the existing child of that name.
func (a *Agent) childDiverged(t *queue.Task) error {
	r, err := a.q.Get(a, t.ID)
	if err != nil {
		return a.diverged("another child named "+t.ID, describe(t))
	}
	return a.diverged(differ(r, t))
}

// differ describes a child as the earlier run and as this run has scheduled it. The texts are equal if the
// children are.
func differ(r *queue.Record, t *queue.Task) (was, is string) {
	was, is = describe(&queue.Task{ID: r.ID, Kind: r.Kind, Queue: r.Queue, Payload: r.Payload}), describe(t)
	if was == is && !bytes.Equal(r.Payload, t.Payload) {
		is = fmt.Sprintf("child %s with another payload after the first %d bytes", t.ID, clipped)
	}
	return was, is
}

func describe(t *queue.Task) string {
	line := t.Queue
	if line == "" {
		line = "default"
	}
	return fmt.Sprintf("child %s of kind %s in queue %s with payload %s", t.ID, t.Kind, line, inQuotes(string(t.Payload)))
}

// clipped is how many bytes of a payload or a name an error has at most.
const clipped = 200

func inQuotes(s string) string {
	if shorter := clip.Bytes(s, clipped); shorter != s {
		return fmt.Sprintf("%q…", shorter)
	}
	return fmt.Sprintf("%q", s)
}

// what describes an entry of the journal for people.
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
	case "now", "rand", "cancel", collects:
		return "a call of " + strings.ToUpper(kind[:1]) + kind[1:]
	}
	return "a wait for " + line
}

// next returns the number of the first entry that this run has not reached, or 0.
func (a *Agent) next() (first int64) {
	for n := range a.memory.Journal {
		if n > a.entry && (first == 0 || n < first) {
			first = n
		}
	}
	return first
}

// replaying reports whether an earlier run has made more calls than this one so far.
func (a *Agent) replaying() bool { return a.next() != 0 }

// leftOver returns an error if the handler has returned before it has made all calls of the earlier run.
func (a *Agent) leftOver() error {
	next := a.next()
	if next == 0 {
		return nil
	}
	return a.diverged(what(a.memory.Journal[next]), "returned before it")
}

// remembered returns the next number, and the entry of the journal with that number. ok is false if no
// earlier run has made that call.
func (a *Agent) remembered() (number int64, entry string, ok bool) {
	a.entry++
	entry, ok = a.memory.Journal[a.entry]
	return a.entry, entry, ok
}

// record adds an entry to the journal. The next call writes it.
func (a *Agent) record(number int64, text []byte) {
	a.note.Entries = append(a.note.Entries, queue.Entry{Number: number, Text: text})
	if len(a.note.Entries) >= maxEntries {
		a.write() // if it fails, the entries are kept, and the next call that writes them returns an error
	}
}

// maxEntries is about how many entries are sent with one call.
const maxEntries = 400

// write writes the recorded entries and the checkpoint.
func (a *Agent) write() error {
	if a.gone != nil {
		return a.gone
	}
	if a.note.Checkpoint == nil && len(a.note.Entries) == 0 {
		return nil
	}
	if err := a.q.Attempts().Remember(a, a.job.ID, a.job.Epoch, a.job.Worker, a.note); err != nil {
		return a.trouble(err)
	}
	a.note = queue.Note{}
	return nil
}
