package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// QueueStats counts the tasks of one queue, over all partitions.
type QueueStats struct {
	Queue                                            string
	Ready, Running                                   int64 // now
	Waiting                                          int64 // agents, now
	Paused                                           bool
	MaxRunning                                       int64 // over all partitions; 0: no limit
	MaxLength                                        int64 // over all partitions; 0: no limit
	Full                                             int   // partitions whose share of MaxLength is used up, so that they refuse new tasks
	Rate                                             Rate  // over all partitions; zero: no limit
	Held                                             int64 // tasks that are held beside the line: see Stats.Held
	Dead                                             int64 // FAILED and CANCELLED tasks whose records are still kept
	Enqueued, Completed, Failed, Cancelled, TimedOut int64 // since the queue was created; TimedOut is part of Failed
	Refused                                          int64 // new tasks that found the queue full, since it was created. A repeated call counts again
}

// Held counts tasks that are held for the same reason: only some workers can run them, and perhaps no
// live one. They are not in line, and go to the first worker that can.
type Held struct {
	Queue  string
	Kind   string
	Reason HeldReason
	Tasks  int64
}

// HeldReason says why a task is held.
type HeldReason string

// The reasons.
const (
	HeldUnhandled HeldReason = "unhandled" // no worker of its queue has a handler for its kind
	HeldDiverged  HeldReason = "diverged"  // the code of the agent has changed, and no worker has a program that can replay it
	HeldSuspect   HeldReason = "suspect"   // its last worker died, perhaps because of it: a worker takes few such tasks, and after a second death in a row one alone
)

// Stats counts the tasks of a namespace, over all partitions.
type Stats struct {
	Deadlines, Limits, Delayed, Waits, Workers, Draining, Retained, Broken int64
	Queues                                                                 []QueueStats // by name
	OpenWaits                                                              []OpenWaits  // by mode; without modes in which no agent waits
	Held                                                                   []Held       // by queue, kind and reason
	// NoDeadline counts the live tasks that have no deadline of their own. Nothing ends such a task by
	// its time, unless it is a timer or a child, which ends with its owner.
	NoDeadline int64
}

// OpenWaits counts the agents that wait in the same mode. It does not count agents that an older
// version of Curfew suspended.
type OpenWaits struct {
	Mode  Mode
	Count int64
	// Unbounded counts those agents that no time limit ends: neither the wait nor the attempt has a
	// limit, and neither the agent nor an owner has a deadline. If their members never end, they
	// wait until somebody cancels them.
	Unbounded int64
}

// Stats reads the counts of all queues, about 500 queues in a call. It is not a snapshot: tasks
// can change while it reads.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	if err := q.ready(ctx); err != nil {
		return Stats{}, refusal.Failed("stats", "", err)
	}
	var sum Stats
	queues, waits := map[string]*QueueStats{}, map[Mode]*OpenWaits{}
	for p := range q.Partitions() {
		if err := q.addStats(ctx, p, &sum, queues, waits); err != nil {
			return Stats{}, refusal.Failed("stats", "", err)
		}
	}
	for _, w := range waits {
		sum.OpenWaits = append(sum.OpenWaits, *w)
	}
	slices.SortFunc(sum.OpenWaits, func(a, b OpenWaits) int { return strings.Compare(string(a.Mode), string(b.Mode)) })
	slices.SortFunc(sum.Held, func(a, b Held) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Kind, b.Kind), strings.Compare(string(b.Reason), string(a.Reason)))
	})
	sum.NoDeadline = -sum.Deadlines
	for _, s := range queues {
		sum.NoDeadline += s.Enqueued - s.Completed - s.Failed - s.Cancelled
		s.Rate.Per /= time.Duration(q.Partitions())
		sum.Queues = append(sum.Queues, *s)
	}
	sum.NoDeadline = max(sum.NoDeadline, 0) // tasks can end between two calls
	slices.SortFunc(sum.Queues, func(a, b QueueStats) int { return strings.Compare(a.Queue, b.Queue) })
	return sum, nil
}

// addStats adds the counts of a partition.
func (q *Queue) addStats(ctx context.Context, p int, sum *Stats, queues map[string]*QueueStats, waits map[Mode]*OpenWaits) error {
	seen := map[string]bool{}
	first := true
	return q.engine.Pages(ctx, p, "read_queues", 2, func(reply []any) error {
		if first {
			first = false
			if err := sum.addSizes(reply[1]); err != nil {
				return err
			}
		}
		for _, row := range reply[3:] {
			if err := sum.addQueue(queues, waits, seen, row); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Stats) addSizes(answer any) error {
	sizes, err := readCounts(answer, 0)
	s.Deadlines += sizes["deadlines"]
	s.Limits += sizes["limits"]
	s.Delayed += sizes["delayed"]
	s.Waits += sizes["waits"]
	s.Workers += sizes["workers"]
	s.Draining += sizes["draining"]
	s.Retained += sizes["retained"]
	s.Broken += sizes["broken"]
	return err
}

// addQueue adds the counts of a queue in one partition. It ignores a queue that it has seen, because
// a scan can return a queue twice.
func (sum *Stats) addQueue(queues map[string]*QueueStats, waits map[Mode]*OpenWaits, seen map[string]bool, row any) error {
	n, err := readCounts(row, 1)
	if err != nil {
		return err
	}
	name := engine.Text(row.([]any)[0])
	if seen[name] {
		return nil
	}
	seen[name] = true
	s := queues[name]
	if s == nil {
		s = &QueueStats{Queue: name}
		queues[name] = s
	}
	addOpenWaits(waits, n)
	held := sum.addHeld(name, n)
	s.Held += held
	s.Ready += n["ready"]
	s.Running += n["running"]
	s.Waiting += n["waiting"]
	s.Dead += n["dead"]
	s.Enqueued += n["enqueued"]
	s.Completed += n["completed"]
	s.Failed += n["failed"]
	s.Cancelled += n["cancelled"]
	s.TimedOut += n["timed_out"]
	s.Paused = s.Paused || n["paused"] == 1
	s.MaxRunning += n["max_running"]
	s.Refused += n["refused"]
	if s.MaxLength += n["max_length"]; n["max_length"] > 0 && n["ready"]+held >= n["max_length"] {
		s.Full++
	}
	if n["rate"] > 0 { // the same in all partitions; Stats divides Per by their number
		s.Rate = Rate{int(n["rate"]), time.Duration(n["per_ms"]) * time.Millisecond, s.Rate.Burst + int(n["burst"])}
	}
	return nil
}

// addHeld adds the sets held,KIND and held,KIND,PROGRAMS of a queue in a partition, and those of suspects, which have !few or !alone
// at their end. It returns how many tasks they have.
func (s *Stats) addHeld(queue string, n map[string]int64) (tasks int64) {
	for name, count := range n {
		name, _, suspect := strings.Cut(name, "!")
		words := strings.SplitN(name, ",", 3)
		if words[0] != "held" || len(words) == 1 || count == 0 {
			continue
		}
		h := Held{Queue: queue, Kind: words[1], Reason: HeldUnhandled}
		if suspect {
			h.Reason = HeldSuspect
		} else if len(words) == 3 {
			h.Reason = HeldDiverged
		}
		i := slices.IndexFunc(s.Held, func(o Held) bool { return o.Queue == h.Queue && o.Kind == h.Kind && o.Reason == h.Reason })
		if i < 0 {
			i, s.Held = len(s.Held), append(s.Held, h)
		}
		s.Held[i].Tasks += count
		tasks += count
	}
	return tasks
}

// addOpenWaits adds the counters bounded_MODE and unbounded_MODE of a queue.
func addOpenWaits(waits map[Mode]*OpenWaits, n map[string]int64) {
	for name, count := range n {
		bound, mode, _ := strings.Cut(name, "_")
		if count == 0 || bound != "bounded" && bound != "unbounded" {
			continue
		}
		w := waits[Mode(mode)]
		if w == nil {
			w = &OpenWaits{Mode: Mode(mode)}
			waits[Mode(mode)] = w
		}
		w.Count += count
		if bound == "unbounded" {
			w.Unbounded += count
		}
	}
}

// readCounts reads pairs of a name and a number, from element start.
func readCounts(answer any, start int) (map[string]int64, error) {
	words, err := engine.List(answer, nil, start)
	if err != nil {
		return nil, err
	}
	if (len(words)-start)%2 != 0 {
		return nil, engine.Unexpected("answer", words)
	}
	counts := map[string]int64{}
	for i := start; i < len(words); i += 2 {
		counts[engine.Text(words[i])] = engine.Number(words[i+1])
	}
	return counts, nil
}
