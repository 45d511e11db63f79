package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// maxMembers is the greatest number of members in one call. The script accepts twice as many, but
// 500 keep a call far below 20 ms. A wait can have more members: it is sent in parts.
const maxMembers = 500

// Member is a child that an agent waits for.
type Member struct {
	ID       string
	Patience time.Duration // the member is cancelled when the wait has lasted this long; 0: no limit for this member
	Mask     string        // like Wait.Mask, for this member only; "": the mask of the wait
}

// Wait describes the members that an agent waits for, and when the wait is over. A replay of the
// agent makes the same wait again. Entry, Digest, and everything that Digest covers must then be the
// same.
type Wait struct {
	Entry   int64      // its number in the journal, which grows over the agent's life
	Mode    queue.Mode // "": WaitAll
	Need    int        // of WaitNOfM and WaitNSettled
	Digest  string     // one word that identifies the wait, its members and the children created for it
	Label   string     // describes the wait to people, in one line
	Reason  string     // why the agent waits, for people
	Members []Member

	Limit        time.Duration // the longest time that the wait lasts; 0: no limit
	Computed     bool          // the limit is computed from the members' own time limits
	FromFirst    bool          // the limit counts from the first end of a member, not from the start of the wait
	From         time.Time     // the limit counts from this instant, not from the start of the wait; zero: from the start
	Proceed      bool          // the policy in the event wait_timed_out is proceed_with_available, not fail
	KeepPending  bool          // members that have not ended at the limit continue; otherwise they are cancelled
	CancelLosers bool          // members that the decided wait does not need are cancelled; otherwise they continue
	// Mask maps each kind of end to a vote. It has five letters: for COMPLETED, an error, a
	// permanent failure, a timeout, and CANCELLED. o counts as ok, b as bad, and n as neither. "" is
	// obbbb: everything except COMPLETED is bad.
	Mask string
	// MaxMembers is the greatest number of members. 0: 10,000.
	MaxMembers int
}

// Suspension is the request of an agent to wait.
type Suspension struct {
	Agent    string
	Epoch    int64
	Worker   string
	Call     string // identifies the call, so that a repeat gets the first answer; "" generates an id. Ignored for waits of more than 500 members
	Wait     Wait
	Note     Note
	Children []queue.Task // children to create, at most 500, each with its ID; enqueue more of them with EnqueueAll first
}

// Suspend makes an agent wait. It returns the outcome if the wait is over at once; the agent then
// continues to run. Otherwise it returns nil: the agent is WAITING, and no longer held by its worker.
//
// Suspend returns [refusal.ErrNotHeld], [refusal.ErrStopping], [refusal.ErrDiverged],
// [refusal.ErrNotOwner] or [refusal.ErrNotFound] (for the agent or a member), or a [*ChildError].
//
// A wait of more than 500 members is sent in parts, and the first part creates the children. If a later
// part is refused (a member does not exist, or a limit that only the server knows is exceeded), the
// children stay and the agent continues to run.
func (a Attempts) Suspend(ctx context.Context, s Suspension) (*queue.WaitOutcome, error) {
	if err := a.q.Ready(ctx); err != nil {
		return nil, refusal.Failed("suspend", "", err)
	}
	p, err := names.PartitionIn(s.Agent, a.q.Partitions())
	if err != nil {
		return nil, refusal.Failed("suspend", s.Agent, err)
	}
	if err := s.checkParts(); err != nil {
		return nil, refusal.Failed("suspend", s.Agent, err)
	}
	children, batch := a.q.TraceSendAll(ctx, s.Children)
	s.Children = children
	answer, err := a.suspendParts(ctx, p, s)
	var odd *refusal.InvalidError
	if errors.As(err, &odd) && odd.Field == "part" {
		answer, err = a.suspendParts(ctx, p, s) // a failover has lost earlier parts
	}
	batch.End(err)
	if err != nil || answer == "" {
		return nil, refusal.Failed("suspend", s.Agent, err)
	}
	o, ok := queue.ReadWaitOutcome(answer)
	if !ok {
		return nil, refusal.Failed("suspend", s.Agent, fmt.Errorf("the journal entry of the wait is not the outcome of a wait: %q", refusal.Clip(answer)))
	}
	return &o, nil
}

// checkParts checks that all members of a wait in parts are the agent's children. Without this check
// a later part could be refused after the first part has created the children. The other settings
// are the same in all parts, so the first part checks them.
func (s *Suspension) checkParts() error {
	if len(s.Wait.Members) <= maxMembers {
		return nil
	}
	ids := make([]string, len(s.Wait.Members))
	for i, m := range s.Wait.Members {
		ids[i] = m.ID
	}
	return names.CheckOwner(s.Agent, ids)
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
	reply, err := a.q.Engine().Call(ctx, p, "suspend", args...)
	answers, err := engine.List(reply, err, 2)
	if err != nil {
		return "", err
	}
	words, err := engine.Words(answers[1:], nil)
	if err != nil {
		return "", err
	}
	switch word := engine.Text(words[0]); word {
	case "WAITING", "MORE":
		return "", nil
	case "READY":
		return engine.Text(words[len(words)-1]), nil
	default:
		return "", refusedAgent(word, words[1:], s)
	}
}

// args returns the arguments of the script for one part of the wait.
func (s *Suspension) args(q *queue.Queue, members []Member, part, parts int) ([]any, error) {
	call := s.Call
	if call == "" || parts > 1 {
		call = names.NewCall()
	}
	args := []any{s.Agent, s.Epoch, s.Worker, call}
	args = s.Wait.fields(args, part, parts)
	args = append(args, len(members))
	for _, m := range members {
		patience := any("")
		if m.Patience > 0 {
			patience = max(m.Patience.Milliseconds(), 1)
		}
		args = append(args, m.ID, patience, m.Mask)
	}
	args, err := s.Note.args(args, q.MaxBytes())
	if err != nil {
		return nil, err
	}
	if len(s.Children) > engine.MaxTasks {
		return nil, refusal.Invalid("children", "are %d, the limit of a call is %d: enqueue the others first", len(s.Children), engine.MaxTasks)
	}
	for i := range s.Children {
		c := &s.Children[i]
		if err := c.Check(q.MaxBytes()); err != nil {
			return nil, &ChildError{c.ID, err}
		}
	}
	return queue.AppendTasks(args, s.Children), nil
}

func (w *Wait) fields(args []any, part, parts int) []any {
	at := len(args)
	args = append(args, 0, "entry", w.Entry, "mode", string(cmp.Or(w.Mode, queue.WaitAll)), "digest", w.Digest, "label", w.Label)
	add := func(name string, value any) { args = append(args, name, value) }
	if w.Reason != "" {
		add("why", w.Reason)
	}
	if w.Mode == queue.WaitNOfM || w.Mode == queue.WaitNSettled {
		add("need", w.Need)
	}
	switch {
	case w.Computed:
		add("limit_ms", "computed")
	case w.Limit > 0:
		add("limit_ms", max(w.Limit.Milliseconds(), 1))
	}
	switch {
	case w.FromFirst:
		add("from", "first")
	case !w.From.IsZero():
		add("from", w.From.UnixMilli())
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
