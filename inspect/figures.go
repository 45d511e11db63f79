package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// OtherKinds is the Kind of the [KindFigures] for all kinds without figures of their own. A
// partition counts its first 1,000 kinds separately, and all later kinds together.
const OtherKinds = "-"

// KindFigures counts the tasks of one kind and queue since the namespace was created: how many were
// created, how they ended, and how long they took.
type KindFigures struct {
	Kind, Queue string
	Enqueued    []Enqueued // sorted by source and start; without counts of 0
	Ends        []Ends     // sorted by status, reason, timeout type and policy; without counts of 0
	// Duration is the time that tasks ran, in seconds, from StartedAt to CompletedAt. For an agent
	// it includes its waits. Tasks that ended without an attempt under way are not counted, because
	// they were in line or delayed, or are promises.
	Duration Histogram
	// Timed is the part of Duration that belongs to tasks that timed out. An older version did not
	// count them separately.
	Timed Histogram
	// Waiting is the time that the same tasks were in line before their last attempt, in seconds:
	// from the instant at which they could be fetched to StartedAt.
	Waiting Histogram
	// Lag is the delay with which timeouts were written, in seconds, from CompletedAt to DetectedAt.
	// For a timeout of an attempt that was followed by another attempt, and of the wait of an agent,
	// it counts from the instant of the limit.
	Lag Histogram
	// LagBy is Lag by the type of the timeout. An older version counted all types together, under "".
	LagBy map[queue.TimeoutType]Histogram
	// Share is the fraction of its time that a task had used when it ended: 0 at its creation, 1 at its
	// deadline. Only tasks with a deadline of their own are counted.
	Share Histogram
	// AttemptTimeouts is the number of attempts that took too long and were followed by another
	// attempt.
	AttemptTimeouts int64
	// WaitTimeouts is the number of waits of agents that reached their limit, by policy: fail or
	// proceed_with_available.
	WaitTimeouts map[string]int64
	// Late is the number of outcomes that workers reported after the task had timed out. A repeat of
	// the last report of a task does not count.
	Late int64
	// Wakeups counts the agents that were woken. It is sorted by mode and reason.
	Wakeups []Wakeups
	// Nodes is set for a kind whose tasks are the runs of a flow. It counts the ends of the
	// definition's nodes, in any queue. It is in the figures of the kind's first queue, sorted by
	// name. A partition counts up to some thousand nodes of a definition separately, and further
	// nodes together under [OtherKinds].
	Nodes []NodeFigures
}

// NodeFigures counts the ends of a node of a definition, in all runs and versions. A node that runs
// several times counts each time.
type NodeFigures struct {
	Node            string
	Ends            []Ends // sorted as those of a kind
	AttemptTimeouts int64  // attempts that took too long and were followed by another attempt
}

// Enqueued counts the tasks that were created from the same source, with the same start. A call that
// finds an existing task creates none, and a task that is retried or given back is not created
// again.
type Enqueued struct {
	Source Source
	Later  bool // the task could not start at once: it had a delay, or is a timer
	Count  int64
}

// Source is the creator of a task.
type Source string

// The sources of tasks.
const (
	FromClient Source = "client" // a program enqueued it
	FromAgent  Source = "agent"  // it is a child of another task
	FromHook   Source = "hook"   // the end of another task enqueued it
	FromRetry  Source = "retry"  // it runs an ended task again
)

// Ends counts the tasks that ended with the same status, reason, timeout type and policy.
type Ends struct {
	Status      queue.Status
	Reason      queue.Reason      // "" for COMPLETED
	TimeoutType queue.TimeoutType // "" unless the tasks timed out
	// Policy is the effect of a timeout: cancel_all also ended the children of the task, and fail
	// ended only the task. It is "" unless the tasks timed out, and for timeouts that an older
	// version counted.
	Policy string
	Count  int64
}

// Wakeups counts the agents that were woken from waits of the same mode, for the same reason. An
// agent whose wait was decided before it began did not wait, and is not counted.
type Wakeups struct {
	Mode   queue.Mode
	Reason string // satisfied, impossible or timed_out
	// Lag is the delay with which the agents were put in line, in seconds, from the instant that
	// decided the wait. Each agent adds one value, so Lag.Count is the number of agents.
	Lag Histogram
}

// figuresTogether is the number of kinds whose figures are read in one round trip.
const figuresTogether = 50

// Figures returns the counts of tasks, summed over all partitions and sorted by kind and queue.
// Redis counts a task in the call that ends it, so all readers get the same counts. A namespace that
// was created with [queue.Config].Figures "off" has no figures.
//
// Figures is not a snapshot: tasks may end while it reads. It reads some 100 fields for each kind
// and queue in each partition, so call it every few seconds, not every few milliseconds.
//
// If a key has the wrong type, Figures returns an error that wraps [refusal.ErrWrongType] and names
// the key, and the figures of the kinds whose keys it could read in all partitions. So no figure is
// too small. If the key that lists the kinds has the wrong type, it returns no figures.
func Figures(ctx context.Context, q *queue.Queue) ([]KindFigures, error) {
	return figuresOf(ctx, q, nil)
}

// figuresOf returns the figures of these kinds, or of all kinds for nil.
func figuresOf(ctx context.Context, q *queue.Queue, selected []string) ([]KindFigures, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("figures", "", err)
	}
	sum := map[[2]string]*KindFigures{}
	var wrong error
	unread, unlisted := map[string]bool{}, false // the kinds whose key has the wrong type, and whether the list of kinds has
	for p := range q.Partitions() {
		if err := q.Engine().CheckVersion(ctx, p); err != nil {
			return nil, refusal.Failed("figures", "", err)
		}
		kinds, err := selected, error(nil)
		if selected == nil {
			kinds, err = q.Engine().Client().SMembers(ctx, q.Root(p)+":kinds").Result()
		}
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			wrong, err = errors.Join(wrong, fmt.Errorf("%s: %w", q.Root(p)+":kinds", q.Engine().Explain(p, err))), nil
			unlisted = true
		}
		for chunk := range slices.Chunk(kinds, figuresTogether) {
			if err != nil {
				break
			}
			var wrongType error
			wrongType, err = addFigures(ctx, q, p, chunk, sum, unread)
			wrong = errors.Join(wrong, wrongType)
		}
		if err != nil {
			return nil, refusal.Failed("figures", "", q.Engine().Unread(ctx, p, err))
		}
	}
	var list []KindFigures
	for _, f := range sum {
		if !unlisted && !unread[f.Kind] {
			f.sort()
			list = append(list, *f)
		}
	}
	slices.SortFunc(list, func(a, b KindFigures) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Queue, b.Queue)) })
	return joinNodes(list), refusal.Failed("figures", "", wrong)
}

// joinNodes moves the nodes of a kind, which are stored without a queue, to the first queue of the kind.
func joinNodes(sorted []KindFigures) []KindFigures {
	var list []KindFigures
	for i, f := range sorted {
		if f.Queue == OtherKinds && i+1 < len(sorted) && sorted[i+1].Kind == f.Kind {
			sorted[i+1].Nodes = f.Nodes
			continue
		}
		list = append(list, f)
	}
	return list
}

// addFigures adds the figures of these kinds in one partition. wrong names the keys of the wrong
// type, and unread collects their kinds.
func addFigures(ctx context.Context, q *queue.Queue, p int, kinds []string, sum map[[2]string]*KindFigures, unread map[string]bool) (wrong, err error) {
	cursors, fields := map[string]uint64{}, map[string]map[string]string{}
	for _, kind := range kinds {
		cursors[kind], fields[kind] = 0, map[string]string{}
	}
	for len(cursors) > 0 { // HSCAN may return a field twice, so collect the fields by name
		scans := map[string]*redis.ScanCmd{}
		engine.Pipelined(ctx, q.Engine().Client(), func(pipe redis.Pipeliner) {
			for kind, cursor := range cursors {
				scans[kind] = pipe.HScan(ctx, q.Root(p)+":figures:"+kind, cursor, "", 1000)
			}
		})
		for kind, scan := range scans {
			words, next, err := scan.Result()
			if redis.HasErrorPrefix(err, "WRONGTYPE") {
				wrong = errors.Join(wrong, fmt.Errorf("%s:figures:%s: %w", q.Root(p), kind, q.Engine().Explain(p, err)))
				unread[kind] = true
			} else if err != nil {
				return nil, err
			}
			for i := 0; i+1 < len(words); i += 2 {
				fields[kind][words[i]] = words[i+1]
			}
			if cursors[kind] = next; next == 0 {
				delete(cursors, kind)
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(fields)) {
		for field, value := range fields[kind] {
			name, rest, separated := strings.Cut(field, " ")
			if !separated {
				continue // the field "about", which describes the hash
			}
			f := sum[[2]string{kind, name}]
			if f == nil {
				f = newFigures(kind, name)
				sum[[2]string{kind, name}] = f
			}
			if n := engine.Number(value); n > 0 { // any other value was written by hand, and is ignored
				f.add(strings.Split(rest, " "), n)
			}
		}
	}
	return wrong, nil
}
