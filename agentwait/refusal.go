package agentwait

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/refusal"
)

// refusalEntry is the refusal of a wait or a Cancel in its stored form. A replay returns the same
// refusal, even if its reason no longer exists, because the handler has continued after it.
type refusalEntry struct {
	digest   string // of the wait, or cancelDigest
	label    string // of the wait
	children []string
	reasons  string // words of sentinels, separated by commas
	text     string
}

// cancelDigest stands for the digest in the refusal of a Cancel.
const cancelDigest = "cancel"

// sentinels are the errors that a stored refusal can wrap, with their words in the journal.
var sentinels = []struct {
	word string
	err  error
}{
	{"missing", refusal.ErrNotFound}, {"foreign", ErrNotOwner}, {"invalid", refusal.ErrInvalid},
	{"conflict", refusal.ErrConflict}, {"broken", refusal.ErrBroken},
}

func (r *refusalEntry) Error() string { return r.text }

// Unwrap returns the sentinels of the refusal.
func (r *refusalEntry) Unwrap() (errs []error) {
	for _, s := range sentinels {
		if strings.Contains(","+r.reasons+",", ","+s.word+",") {
			errs = append(errs, s.err)
		}
	}
	return errs
}

// recordRefusal records in the journal that a call was refused, unless the refusal ends this run. It
// returns the error in the form that a replay gets.
func (a *Agent) recordRefusal(number int64, digest, label string, err error) error {
	var reasons []string
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			reasons = append(reasons, s.word)
		}
	}
	if a.stopErr != nil || len(reasons) == 0 {
		return err
	}
	text := err.Error()
	r := &refusalEntry{digest, label, refusedChildren(err), strings.Join(reasons, ","), text[:min(len(text), 4096)]}
	a.record(number, fmt.Appendf(nil, "refused %s %s %s\n%s\n%s", digest, cmp.Or(strings.Join(r.children, ","), "-"), r.reasons, label, r.text))
	return a.refusedAgain(r)
}

// refusedChildren returns the names of the children that the refusal names.
func refusedChildren(err error) (names []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			names = append(names, refusedChildren(err)...)
		}
		return names
	}
	var c *claim.ChildError
	if errors.As(err, &c) {
		names = append(names, nameOf(c.ID))
	}
	return names
}

// readRefusal decodes an entry of the journal. ok is false if the entry is not a refusal.
func readRefusal(entry string) (r *refusalEntry, ok bool) {
	lines := strings.SplitN(entry, "\n", 3)
	words := strings.Fields(lines[0])
	if len(lines) != 3 || len(words) != 4 || words[0] != "refused" {
		return nil, false
	}
	r = &refusalEntry{digest: words[1], label: lines[1], reasons: words[3], text: lines[2]}
	if words[2] != "-" {
		r.children = strings.Split(words[2], ",")
	}
	return r, true
}

// describe describes the refused call for people.
func (r *refusalEntry) describe() string {
	if r.digest == cancelDigest {
		return "a call of Cancel, which was refused"
	}
	return "a wait for " + r.label + ", which was refused"
}

// refusedAgain forgets the children that were refused, and returns the refusal.
func (a *Agent) refusedAgain(r *refusalEntry) error {
	refusals := map[string]error{}
	for _, name := range r.children {
		refusals[a.job.ID+"."+name] = r
	}
	a.forget(refusals)
	return r
}
