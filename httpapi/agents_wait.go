package httpapi

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// suspendAgent makes an agent wait. Each wait has a number in the journal of the agent, one more than the number of the last wait that is
// over. So an agent that crashes and waits again begins a new wait, which is over at once if its tasks have ended meanwhile.
func suspendAgent(c *call) (any, error) {
	agent, f := c.agent()
	if f != nil {
		return nil, f
	}
	var body suspendBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	if f := sameAgent(agent, body.AgentID); f != nil {
		return nil, f
	}
	s, f := body.read(agent, c.q.MaxBytes())
	if f != nil {
		return nil, f
	}
	if s.Worker == "" {
		record, err := c.q.Get(c, agent)
		if err != nil {
			return nil, err
		}
		s.Worker = cmp.Or(record.Worker, "-") // Redis refuses an agent that nobody holds
	}
	memory, err := claim.Of(c.q).Journal(c, agent)
	if err != nil {
		return nil, err
	}
	newest, _, _ := newestWait(memory)
	s.Wait.Entry = newest + 1
	if s.Note.Checkpoint != nil {
		s.Note.Checkpoint.Entries = newest
	}
	if s.Call == "" { // the same request again has the same number, as long as the wait is not over
		s.Call = fmt.Sprintf("wait-%d-%d-%s", s.Epoch, s.Wait.Entry, s.Wait.Digest)
	}
	if body.WaitForSignal != nil {
		if err := c.addSignal(&s, *body.WaitForSignal); err != nil {
			return nil, err
		}
	}
	outcome, err := claim.Of(c.q).Suspend(c, s)
	if err != nil {
		return nil, ofAgent(err)
	}
	if outcome == nil {
		return suspended{Status: queue.Waiting}, nil
	}
	return suspended{Status: queue.Running, Wait: lineOfWait(agent, *outcome)}, nil
}

// addSignal adds the promise that holds a signal to the children that the wait makes. It has the queue of the agent, as the promise
// that a signal makes which comes earlier.
func (c *call) addSignal(s *claim.Suspension, name string) error {
	agent, err := c.q.Get(c, s.Agent)
	if err != nil {
		return err
	}
	s.Children = []queue.Task{{ID: s.Agent + ".s-" + name, Kind: "signal", Queue: agent.Queue, Promise: true}}
	return nil
}

var modes = []queue.Mode{queue.WaitAll, queue.WaitAny, queue.WaitFailFast, queue.WaitSettled, queue.WaitAnyOK, queue.WaitNOfM, queue.WaitNSettled}

// read checks a wait.
func (b *suspendBody) read(agent string, maxBytes int) (s claim.Suspension, f *failure) {
	s = claim.Suspension{Agent: agent, Worker: b.Worker, Wait: claim.Wait{Mode: queue.WaitAll, Reason: b.Reason}}
	switch {
	case b.Epoch < 1:
		return s, wrong("epoch", "%d must be the number that fetch gave", b.Epoch)
	case len(b.Reason) > 1024 || strings.ContainsAny(b.Reason, "\n\r"):
		return s, wrong("reason", "must be one line of up to 1024 bytes")
	}
	if f = contentTooLarge("user_state", len(b.UserState), maxBytes); f != nil {
		return s, f
	}
	s.Epoch = b.Epoch
	if s.Wait.Limit, f = spanOf("timeout", b.Timeout, b.TimeoutMs, longestSpan); f != nil {
		return s, f
	}
	if (b.Timeout != nil || b.TimeoutMs != nil) && s.Wait.Limit == 0 {
		return s, wrong("timeout", "must not be 0: leave it out for no limit")
	}
	switch {
	case b.OnPending == nil || *b.OnPending == "cancel":
	case *b.OnPending == "keep":
		s.Wait.KeepPending = true
	default:
		return s, wrong("on_pending", "must be cancel or keep: what happens at the timeout to tasks that have not ended")
	}
	if b.Call != nil {
		if err := queue.CheckCall(*b.Call); err != nil {
			return s, failureOf(err)
		}
		s.Call = fmt.Sprintf("%s-%d", *b.Call, s.Epoch) // another attempt of the agent can use the same name
	}
	if b.UserState != nil {
		s.Note.Checkpoint = &queue.Checkpoint{State: b.UserState}
	}
	if f = b.members(&s.Wait, agent); f == nil {
		describe(&s.Wait)
	}
	return s, f
}

// members reads the members of the wait: a signal, a task, or several tasks.
func (b *suspendBody) members(w *claim.Wait, agent string) *failure {
	count := 0
	for _, present := range []bool{b.WaitForSignal != nil, b.WaitForTask != nil, b.WaitForTasks != nil} {
		if present {
			count++
		}
	}
	if count != 1 {
		return wrong("wait_for_tasks", "wait_for_task and wait_for_signal: give exactly one of the three")
	}
	switch {
	case b.WaitForSignal != nil:
		if err := queue.CheckSignal(*b.WaitForSignal); err != nil {
			return failureOf(err).of("wait_for_signal")
		}
		w.Members = []claim.Member{{ID: agent + ".s-" + *b.WaitForSignal}}
		w.KeepPending = true // a signal that is late still counts
		return nil
	case b.WaitForTask != nil:
		if f := checkMembers("wait_for_task", []string{*b.WaitForTask}); f != nil {
			return f.of("wait_for_task")
		}
		w.Members = []claim.Member{{ID: *b.WaitForTask}}
		return nil
	}
	return within(b.WaitForTasks.read(w), "wait_for_tasks")
}

func (b *waitForTasks) read(w *claim.Wait) *failure {
	if f := checkMembers("task_ids", b.TaskIDs); f != nil {
		return f
	}
	mode := queue.Mode(strings.ToLower(strings.TrimPrefix(b.Mode, "WAIT_MODE_")))
	if mode == "" || mode == "unspecified" {
		mode = queue.WaitAll
	}
	if !slices.Contains(modes, mode) {
		return wrong("mode", "must be one of %v; WAIT_MODE_ALL and WAIT_MODE_ANY are read, too", modes)
	}
	needs := mode == queue.WaitNOfM || mode == queue.WaitNSettled
	if needs != (b.Need > 0) || b.Need < 0 || b.Need > len(b.TaskIDs) {
		return wrong("need", "is how many tasks decide the wait, 1 to their number: give it with the modes n_of_m and n_settled only")
	}
	w.Mode, w.Need = mode, b.Need
	for _, id := range b.TaskIDs {
		w.Members = append(w.Members, claim.Member{ID: id})
	}
	return nil
}

// describe gives a wait its label and its digest.
func describe(w *claim.Wait) {
	w.Label = fmt.Sprintf("%s of %d", w.Mode, len(w.Members))
	sum := fnv.New64a()
	fmt.Fprint(sum, w.Mode, w.Need, w.Limit, w.KeepPending)
	for _, m := range w.Members {
		fmt.Fprint(sum, " ", m.ID)
	}
	w.Digest = fmt.Sprintf("h%x", sum.Sum64())
}

// newestWait returns the number of the journal's last entry, and the outcome of its newest wait.
func newestWait(m *queue.Memory) (newest int64, outcome queue.WaitOutcome, found bool) {
	newest = m.Entries
	var at int64
	for n, text := range m.Journal {
		newest = max(newest, n)
		if o, ok := queue.ReadWaitOutcome(text); ok && n > at {
			at, outcome, found = n, o, true
		}
	}
	return newest, outcome, found
}

func lineOfWait(agent string, o queue.WaitOutcome) *waitLine {
	line := &waitLine{Reason: o.Reason, At: o.At.UnixMilli(), Members: []string{}, Settled: []string{}}
	for _, name := range o.Members {
		line.Members = append(line.Members, agent+"."+name)
	}
	for _, name := range o.Settled {
		line.Settled = append(line.Settled, agent+"."+name)
	}
	if o.Winner != "" {
		line.Winner = agent + "." + o.Winner
	}
	return line
}

func checkpointAgent(c *call) (any, error) {
	agent, f := c.agent()
	if f != nil {
		return nil, f
	}
	var body checkpointBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	if body.Epoch < 1 {
		return nil, wrong("epoch", "%d must be the number that fetch gave", body.Epoch)
	}
	if f := contentTooLarge("user_state", len(body.UserState), c.q.MaxBytes()); f != nil {
		return nil, f
	}
	memory, err := claim.Of(c.q).Journal(c, agent)
	if err != nil {
		return nil, err
	}
	newest, _, _ := newestWait(memory)
	err = claim.Of(c.q).Remember(c, agent, body.Epoch, body.Worker, claim.Note{Checkpoint: &queue.Checkpoint{State: body.UserState, Entries: newest}})
	if err != nil {
		return nil, err
	}
	return checkpoint{UserState: body.UserState}, nil
}

func getAgentCheckpoint(c *call) (any, error) {
	agent, f := c.agent()
	if f != nil {
		return nil, f
	}
	memory, err := claim.Of(c.q).Journal(c, agent)
	if err != nil {
		return nil, err
	}
	answer := checkpoint{UserState: memory.State}
	if _, outcome, ok := newestWait(memory); ok {
		answer.Wait = lineOfWait(agent, outcome)
	}
	if answer.UserState == nil && answer.Wait == nil { // an agent that does not exist has no journal either
		if _, err := c.q.Get(c, agent); err != nil {
			return nil, err
		}
	}
	return answer, nil
}
