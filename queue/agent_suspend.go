package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Mode is when a wait is over.
type Mode string

// The modes of a wait. "The last" is the last of its members to end, however it ends.
const (
	WaitAll      Mode = "all"       // the last; at once if one had failed before the wait began
	WaitFailFast Mode = "fail_fast" // the last, or the first that fails
	WaitSettled  Mode = "settled"   // the last
	WaitAny      Mode = "any"       // the first, however it ends
	WaitAnyOK    Mode = "any_ok"    // the first that completes, or the last
	WaitNOfM     Mode = "n_of_m"    // the nth that completes, or as soon as that is impossible
	WaitNSettled Mode = "n_settled" // the nth, however it ends
	WaitPeek     Mode = "peek"      // at once
)

const maxMembers = 500 // a call, half of what the script takes, to stay far below 20 ms; a wait may have more

// Member is a child that an agent waits for.
type Member struct {
	ID       string
	Patience time.Duration // it is cancelled after so long in the wait; 0: no limit of its own
	Mask     string        // as Wait.Mask, for this member alone; "": the wait's
}

// Wait is what an agent waits for. The same agent comes to it again when it is replayed,
// and then Entry, Digest and what they stand for must be the same.
type Wait struct {
	Entry   int64  // its number in the journal, which grows over the agent's life
	Mode    Mode   // "": WaitAll
	Need    int    // of WaitNOfM and WaitNSettled
	Digest  string // one word that stands for the wait, its members and what was made for it
	Label   string // says it to people, in one line
	Reason  string // why the agent waits, in words of its own
	Members []Member

	Limit        time.Duration // how long it may take; 0: no limit
	Computed     bool          // the limit is what its members' own times make of it
	FromFirst    bool          // the limit begins with the first end, not with the wait
	Proceed      bool          // the policy that wait_timed_out tells: proceed_with_available, not fail
	KeepPending  bool          // members that have not ended at the limit go on; otherwise they are cancelled
	CancelLosers bool          // members that nobody needs any more are cancelled; otherwise they go on
	// Mask says what each way to end counts as: a letter for COMPLETED, an error, a failure
	// for good, a timeout, and CANCELLED; o ok, b bad, n neither. "" is obbbb.
	Mask string
	// Most is how many members it may have. 0: 10,000.
	MaxMembers int
}

// Suspension is all that an agent hands over when it waits.
type Suspension struct {
	Agent    string
	Epoch    int64
	Worker   string
	Wait     Wait
	Note     Note
	Children []Task // 500 at the most, each with its ID; give more to EnqueueAll first
}

// Suspend has an agent wait. It returns the outcome if that is known already: then the agent
// runs on. Otherwise it returns nil: the agent is WAITING, and its worker has nothing more
// to do with it. A wait of more than 500 members goes in parts, of which the first makes the children: if a later one
// is refused (a member that does not exist, a limit that only the server knows) they stay, and the agent runs on.
func (a Attempts) Suspend(ctx context.Context, s Suspension) (*WaitOutcome, error) {
	if err := a.q.ready(ctx); err != nil {
		return nil, refusal.Failed("suspend", "", err)
	}
	p, err := names.PartitionIn(s.Agent, a.q.Partitions())
	if err != nil {
		return nil, refusal.Failed("suspend", s.Agent, err)
	}
	if err := s.whole(); err != nil {
		return nil, refusal.Failed("suspend", s.Agent, err)
	}
	answer, err := a.suspendParts(ctx, p, s)
	var odd *refusal.InvalidError
	if errors.As(err, &odd) && odd.Field == "part" {
		answer, err = a.suspendParts(ctx, p, s) // a failover has lost the parts before it
	}
	if err != nil || answer == "" {
		return nil, refusal.Failed("suspend", s.Agent, err)
	}
	o, ok := ReadWaitOutcome(answer)
	if !ok {
		return nil, refusal.Failed("suspend", s.Agent, fmt.Errorf("the journal has something else there: %.100q", answer))
	}
	return &o, nil
}

// whole checks a wait that goes in parts for what would refuse a later part, when an earlier one has made
// the children: members that are not the agent's. The rest of a wait is the same in all parts.
func (s *Suspension) whole() error {
	if len(s.Wait.Members) <= maxMembers {
		return nil
	}
	ids := make([]string, len(s.Wait.Members))
	for i, m := range s.Wait.Members {
		ids[i] = m.ID
	}
	return owned(s.Agent, ids)
}

func (a Attempts) suspendParts(ctx context.Context, p int, s Suspension) (answer string, err error) {
	members := s.Wait.Members
	parts := max((len(members)+maxMembers-1)/maxMembers, 1)
	for part := 1; part <= parts && err == nil && answer == ""; part++ {
		n := min(len(members), maxMembers)
		answer, err = a.suspendPart(ctx, p, &s, members[:n], part, parts)
		members, s.Children, s.Note = members[n:], nil, Note{}
	}
	return answer, err
}

func (a Attempts) suspendPart(ctx context.Context, p int, s *Suspension, members []Member, part, parts int) (string, error) {
	args, err := s.args(a.q, members, part, parts)
	if err != nil {
		return "", err
	}
	reply, err := a.q.engine.Call(ctx, p, "suspend", args...)
	words, err := engine.List(reply, err, 2)
	if err != nil {
		return "", err
	}
	switch word := engine.Text(words[1]); word {
	case "WAITING", "MORE":
		return "", nil
	case "READY":
		return engine.Text(words[len(words)-1]), nil
	default:
		return "", refusedAgent(word, words[2:], s)
	}
}

// args are the arguments of the script, for one part of the members.
func (s *Suspension) args(q *Queue, members []Member, part, parts int) ([]any, error) {
	args := []any{s.Agent, s.Epoch, s.Worker, NewCall()}
	args = s.Wait.fields(args, part, parts)
	args = append(args, len(members))
	for _, m := range members {
		patience := any("")
		if m.Patience > 0 {
			patience = max(m.Patience.Milliseconds(), 1)
		}
		args = append(args, m.ID, patience, m.Mask)
	}
	args, err := s.Note.args(args, q.config.MaxBytes)
	if err != nil {
		return nil, err
	}
	if len(s.Children) > maxList {
		return nil, refusal.Invalid("children", "are %d, and a call takes %d: enqueue the others first", len(s.Children), maxList)
	}
	var children shapes
	for i := range s.Children {
		c := &s.Children[i]
		if err := c.check(q.config.MaxBytes); err != nil {
			return nil, &ChildError{c.ID, err}
		}
		children.add(c, c.ID)
	}
	return children.args(args), nil
}

func (w *Wait) fields(args []any, part, parts int) []any {
	at := len(args)
	args = append(args, 0, "entry", w.Entry, "mode", string(cmp.Or(w.Mode, WaitAll)), "digest", w.Digest, "label", w.Label)
	add := func(name string, value any) { args = append(args, name, value) }
	if w.Reason != "" {
		add("why", w.Reason)
	}
	if w.Mode == WaitNOfM || w.Mode == WaitNSettled {
		add("need", w.Need)
	}
	switch {
	case w.Computed:
		add("limit_ms", "computed")
	case w.Limit > 0:
		add("limit_ms", max(w.Limit.Milliseconds(), 1))
	}
	if w.FromFirst {
		add("from", "first")
	}
	if w.Proceed {
		add("on_timeout", "proceed_with_available")
	}
	if w.KeepPending {
		add("on_pending", "keep")
	}
	if w.CancelLosers {
		add("on_losers", "cancel")
	}
	if w.Mask != "" {
		add("mask", w.Mask)
	}
	if w.MaxMembers != 0 {
		add("most", w.MaxMembers)
	}
	if parts > 1 {
		add("part", part)
		add("of", parts)
	}
	args[at] = (len(args) - at - 1) / 2
	return args
}
