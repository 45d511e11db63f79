package agentwait

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// kept is the refusal of a wait or a Cancel, as the journal stores it. A replay is refused too, even if
// the reason no longer exists: the handler has continued after the refusal.
type kept struct {
	digest   string // of the wait, or ofCancel
	label    string // of the wait
	children []string
	reasons  string // words of sentinels, separated by commas
	text     string
}

// ofCancel is in place of the digest in the refusal of a Cancel.
const ofCancel = "cancel"

// sentinels are the errors that a refusal can be, with their words in the journal.
var sentinels = []struct {
	word string
	err  error
}{
	{"missing", refusal.ErrNotFound}, {"foreign", ErrNotOwner}, {"invalid", refusal.ErrInvalid},
	{"conflict", refusal.ErrConflict}, {"broken", refusal.ErrBroken},
}

func (r *kept) Error() string { return r.text }

// Unwrap returns the sentinels of the refusal.
func (r *kept) Unwrap() (all []error) {
	for _, s := range sentinels {
		if strings.Contains(","+r.reasons+",", ","+s.word+",") {
			all = append(all, s.err)
		}
	}
	return all
}

// recordRefusal records in the journal that a call was refused, unless the refusal ends this run. It
// returns the error as a replay gets it.
func (a *Agent) recordRefusal(number int64, digest, label string, err error) error {
	var reasons []string
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			reasons = append(reasons, s.word)
		}
	}
	if a.gone != nil || len(reasons) == 0 {
		return err
	}
	text := err.Error()
	r := &kept{digest, label, guilty(err), strings.Join(reasons, ","), text[:min(len(text), 4096)]}
	a.record(number, fmt.Appendf(nil, "refused %s %s %s\n%s\n%s", digest, cmp.Or(strings.Join(r.children, ","), "-"), r.reasons, label, r.text))
	return a.refusedAgain(r)
}

// guilty returns the names of the children that an error is about.
func guilty(err error) (names []string) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			names = append(names, guilty(one)...)
		}
		return names
	}
	var c *queue.ChildError
	if errors.As(err, &c) {
		names = append(names, nameOf(c.ID))
	}
	return names
}

// readRefusal decodes an entry of the journal. ok is false if the entry is not a refusal.
func readRefusal(entry string) (r *kept, ok bool) {
	lines := strings.SplitN(entry, "\n", 3)
	words := strings.Fields(lines[0])
	if len(lines) != 3 || len(words) != 4 || words[0] != "refused" {
		return nil, false
	}
	r = &kept{digest: words[1], label: lines[1], reasons: words[3], text: lines[2]}
	if words[2] != "-" {
		r.children = strings.Split(words[2], ",")
	}
	return r, true
}

// what describes the refused call for people.
func (r *kept) what() string {
	if r.digest == ofCancel {
		return "a call of Cancel, which was refused"
	}
	return "a wait for " + r.label + ", which was refused"
}

// refusedAgain forgets the children that were refused, and returns the refusal.
func (a *Agent) refusedAgain(r *kept) error {
	why := map[string]error{}
	for _, name := range r.children {
		why[a.job.ID+"."+name] = r
	}
	a.forget(why)
	return r
}
