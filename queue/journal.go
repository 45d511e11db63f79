package queue

import (
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
)

// Memory is the journal of an agent.
type Memory struct {
	Checkpoint
	Journal  map[int64]string   // entries since the checkpoint, by number
	Children map[string]*Record // members of the newest ended wait, by the last part of the id; a large wait has none here
}

// Checkpoint is the state from which an agent's replay begins.
type Checkpoint struct {
	State    []byte
	Children int64 // the number of children created before it
	Entries  int64 // the number of the last entry before it
}

// Mode says when a wait is over.
type Mode string

// The modes of a wait. Each comment says which end of a member ends the wait.
const (
	WaitAll      Mode = "all"       // the last end; the wait is over at once if a member had failed before it began
	WaitFailFast Mode = "fail_fast" // the last end, or the first failure
	WaitSettled  Mode = "settled"   // the last end
	WaitAny      Mode = "any"       // the first end of any kind
	WaitAnyOK    Mode = "any_ok"    // the first completion, or the last end
	WaitNOfM     Mode = "n_of_m"    // the nth completion, or the end after which n completions are impossible
	WaitNSettled Mode = "n_settled" // the nth end of any kind
	WaitPeek     Mode = "peek"      // none: the wait is over at once
	WaitCollect  Mode = "collect"   // the first end of any child that no wait of this mode has handed over; it has no members
)

// WaitOutcome is the outcome of a wait, as the agent's journal records it.
type WaitOutcome struct {
	Reason  string // satisfied, impossible or timed_out
	Winner  string // the name of the member whose end decided; "" for none
	At      time.Time
	Digest  string
	Label   string
	Members []string // names, in the order of the call
	Settled []string // names of the members that had ended, in the order in which they ended
}

// ReadWaitOutcome parses an entry of a journal. ok is false if the entry is not the outcome of a wait.
func ReadWaitOutcome(entry string) (o WaitOutcome, ok bool) {
	lines := strings.Split(entry, "\n")
	words := strings.Fields(lines[0])
	if len(lines) != 4 || len(words) != 5 || words[0] != "wait" {
		return o, false
	}
	o = WaitOutcome{Reason: words[1], Winner: words[2], At: engine.Instant(words[3]), Digest: words[4],
		Label: lines[1], Members: strings.Fields(lines[2]), Settled: strings.Fields(lines[3])}
	if o.Winner == "-" {
		o.Winner = ""
	}
	return o, true
}
