package agentwait

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/queue"
)

// newDigest returns an empty digest of the calls that a replay must repeat.
func newDigest() hash.Hash { return sha1.New() }

// digestChild adds the fields of a child that a replay must repeat.
func digestChild(h hash.Hash, t *queue.Task) {
	fmt.Fprintf(h, "%s\n%s\n%s\n%d\n", t.ID, t.Kind, t.Queue, len(t.Payload))
	h.Write(t.Payload)
}

// digestOf returns the word that identifies a wait. It covers the mode, the members, the children
// scheduled for the wait, and its policy.
func (a *Agent) digestOf(w *claim.Wait) string {
	h := newDigest()
	fmt.Fprintf(h, "%s %d %x\n", w.Mode, w.Need, a.digest.Sum(nil))
	for _, m := range w.Members {
		fmt.Fprintln(h, m.ID)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]) + "-" + policyOf(w)
}

// policyOf returns the part of a wait's policy that a replay must repeat, because it determines the
// meaning of the stored outcome. It omits the limits, so that they can be changed while agents run.
func policyOf(w *claim.Wait) string {
	masks := newDigest()
	for _, m := range w.Members {
		fmt.Fprintln(masks, cmp.Or(m.Mask, w.Mask))
	}
	return fmt.Sprintf("%t-%t-%x", w.KeepPending, w.CancelLosers, masks.Sum(nil)[:4])
}

// policyDifference returns the names of the policies that differ between two digests of a wait. It
// returns "" if anything else differs.
func policyDifference(earlier, current string) string {
	var names []string
	old, now := strings.Split(earlier, "-"), strings.Split(current, "-")
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

// diverged ends the run, and returns an error about a call that differs from the call of an earlier
// run.
func (a *Agent) diverged(was, now string) error {
	a.stopErr = &DivergedError{Agent: a.job.ID, Call: a.entry, Was: was, Now: now}
	return a.stopErr
}

// waitDiverged returns an error that describes the difference between a wait and the wait of an
// earlier run. If the waits themselves are equal, a child that was scheduled since the previous wait
// differs.
func (a *Agent) waitDiverged(label, digest string, w *claim.Wait) error {
	if label != w.Label {
		return a.diverged(describeEntry(label), fmt.Sprintf("a wait for %s", w.Label))
	}
	if names := policyDifference(digest, w.Digest); names != "" {
		return a.diverged(describeEntry(label), fmt.Sprintf("the same wait with another policy (%s)", names))
	}
	if _, err := a.matchChildren(w); err != nil {
		return err
	}
	was, now := "more children before its wait for "+w.Label+", or the same in another order", "none"
	if len(w.Members) > maxLabelNames {
		was += fmt.Sprintf(", or other members after the first %d", maxLabelNames)
	}
	if len(a.recent) > 0 {
		var ids []string
		for i := range a.recent {
			ids = append(ids, a.recent[i].ID)
		}
		now = "only " + few(ids)
	}
	return a.diverged(was, now)
}

// matchWait compares a wait with the wait of an earlier run that has another digest. They match if
// they have the same mode, members and policy, and if the children scheduled since the previous wait
// match those of the earlier run. The order does not matter, because the outcome of a wait has names
// and not places.
func (a *Agent) matchWait(o *queue.WaitOutcome, w *claim.Wait) error {
	_, was, _ := strings.Cut(o.Digest, "-")
	if _, now, _ := strings.Cut(w.Digest, "-"); was != now || !sameMembers(o, w) {
		return a.waitDiverged(o.Label, o.Digest, w)
	}
	added, err := a.matchChildren(w)
	a.added = append(a.added, added...)
	return err
}

// matchChildren compares the children that were scheduled since the previous wait with those of an
// earlier run, by their names. It returns the children that the earlier run did not create: they are
// new in the code.
//
// A child without a name cannot be new, because it would shift the numbers of those after it.
func (a *Agent) matchChildren(w *claim.Wait) (added []queue.Task, err error) {
	records, err := a.readTasks(a.recent)
	if err != nil {
		return nil, a.callError(err)
	}
	for i, r := range records {
		t := &a.recent[i]
		if r != nil {
			if was, now := childDifference(r, t); was != now {
				return nil, a.diverged(was, now)
			}
		} else if isNumber(nameOf(t.ID)) {
			return nil, a.diverged(fmt.Sprintf("no child %s before its wait for %s", t.ID, w.Label), describe(t))
		} else {
			added = append(added, *t)
		}
	}
	return added, nil
}

// sameMembers reports whether a wait has the mode and the members of a wait of an earlier run. A
// wait of the mode collect has none: those in its outcome are the ends that it returned.
func sameMembers(o *queue.WaitOutcome, w *claim.Wait) bool {
	was, _, _ := strings.Cut(o.Label, " (")
	now, _, _ := strings.Cut(w.Label, " (")
	if was != now || w.Mode == queue.WaitCollect {
		return was == now
	}
	names := make([]string, len(w.Members))
	for i, m := range w.Members {
		names[i] = nameOf(m.ID)
	}
	slices.Sort(names)
	return slices.Equal(names, slices.Sorted(slices.Values(o.Members)))
}

// childDiverged returns an error that describes the difference between a child and the existing
// child with the same name.
func (a *Agent) childDiverged(t *queue.Task) error {
	records, err := a.readTasks([]queue.Task{*t})
	if err != nil || records[0] == nil {
		return a.diverged("another child named "+t.ID, describe(t))
	}
	return a.diverged(childDifference(records[0], t))
}

// childDifference describes the child of the earlier run and the child of this run. If the children
// are equal, the texts are equal.
func childDifference(r *queue.Record, t *queue.Task) (was, now string) {
	was, now = describe(&queue.Task{ID: r.ID, Kind: r.Kind, Queue: r.Queue, Payload: r.Payload}), describe(t)
	if was == now && !bytes.Equal(r.Payload, t.Payload) {
		now = fmt.Sprintf("child %s with another payload after the first %d bytes", t.ID, maxQuoted)
	}
	return was, now
}

func describe(t *queue.Task) string {
	queueName := t.Queue
	if queueName == "" {
		queueName = "default"
	}
	return fmt.Sprintf("child %s of kind %s in queue %s with payload %s", t.ID, t.Kind, queueName, inQuotes(string(t.Payload)))
}

// maxQuoted is the greatest number of bytes of a payload or a name in an error.
const maxQuoted = 200

func inQuotes(s string) string {
	if shorter := clip.Bytes(s, maxQuoted); shorter != s {
		return fmt.Sprintf("%q…", shorter)
	}
	return fmt.Sprintf("%q", s)
}

// describeEntry describes an entry of the journal for people.
func describeEntry(entry string) string {
	if o, ok := queue.ReadWaitOutcome(entry); ok {
		return "a wait for " + o.Label
	}
	if r, ok := readRefusal(entry); ok {
		return r.describe()
	}
	line, _, _ := strings.Cut(entry, "\n")
	kind, name, _ := strings.Cut(line, " ")
	switch kind {
	case "step", "failed":
		return fmt.Sprintf("the step %q", name)
	case missingEntry:
		return "a call without an entry in the journal"
	case "now", "rand", "cancel", collectEntry:
		return "a call of " + strings.ToUpper(kind[:1]) + kind[1:]
	}
	return "a wait for " + line
}

// next returns the number of the first journal entry that this run has not reached, or 0.
func (a *Agent) next() (first int64) {
	for n := range a.memory.Journal {
		if n > a.entry && (first == 0 || n < first) {
			first = n
		}
	}
	return first
}

// replaying reports whether an earlier run has made further calls.
func (a *Agent) replaying() bool { return a.next() != 0 }

// checkReplayed returns an error if the handler returned although an earlier run has made further
// calls.
func (a *Agent) checkReplayed() error {
	next := a.next()
	if next == 0 {
		return nil
	}
	a.entry = next
	return a.diverged(describeEntry(a.memory.Journal[next]), "missing: the handler returned before it")
}

// startAdded creates the children that are new in the code, as a call of the earlier run would have.
func (a *Agent) startAdded() error {
	if len(a.added) == 0 || a.rehearsal != nil {
		return nil
	}
	return a.send()
}

// nextEntry returns the next number, and the journal entry with this number. ok is false if no
// earlier run has made the call.
func (a *Agent) nextEntry() (number int64, entry string, ok bool) {
	a.entry++
	entry, ok = a.memory.Journal[a.entry]
	if !ok && a.rehearsal != nil {
		return a.entry, missingEntry, true // the call must not have an effect
	}
	return a.entry, entry, ok
}

// record adds an entry to the journal. The next call writes it.
func (a *Agent) record(number int64, text []byte) {
	a.note.Entries = append(a.note.Entries, claim.Entry{Number: number, Text: text})
	if len(a.note.Entries) >= maxEntries {
		a.write() // an error is not lost: the entries stay, and the next call that writes them returns it
	}
}

// maxEntries is the number of entries after which they are written, so that one call stays small.
const maxEntries = 400

// write writes the recorded entries and the checkpoint.
func (a *Agent) write() error {
	if a.stopErr != nil {
		return a.stopErr
	}
	if a.note.Checkpoint == nil && len(a.note.Entries) == 0 {
		return nil
	}
	if err := claim.Of(a.q).Remember(a, a.job.ID, a.job.Epoch, a.job.Worker, a.note); err != nil {
		return a.callError(err)
	}
	a.note = claim.Note{}
	return nil
}
