package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// QueueStats counts the tasks of one queue, over all partitions.
type QueueStats struct {
	Queue                                            string
	Ready, Running                                   int64 // now
	Waiting                                          int64 // agents, now
	Paused                                           bool
	MaxRunning                                       int64 // over all partitions; 0: no limit
	Rated                                            bool  // it has a rate
	Dead                                             int64 // FAILED and CANCELLED records still kept
	Enqueued, Completed, Failed, Cancelled, TimedOut int64 // ever; TimedOut is part of Failed
}

// Stats counts tasks, over all partitions.
type Stats struct {
	Deadlines, Limits, Delayed, Waits, Workers, Draining, Retained, Broken int64
	Queues                                                                 []QueueStats // by name
}

// Stats counts what is where.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	var sum Stats
	queues := map[string]*QueueStats{}
	for p := range q.config.Partitions {
		reply, err := q.call(ctx, p, "read_queues")
		answers, err := list(reply, err, 2)
		if err != nil {
			return Stats{}, failed("stats", "", err)
		}
		sizes, err := readCounts(answers[1], 0)
		if err != nil {
			return Stats{}, failed("stats", "", err)
		}
		sum.Deadlines += sizes["deadlines"]
		sum.Limits += sizes["limits"]
		sum.Delayed += sizes["delayed"]
		sum.Waits += sizes["waits"]
		sum.Workers += sizes["workers"]
		sum.Draining += sizes["draining"]
		sum.Retained += sizes["retained"]
		sum.Broken += sizes["broken"]
		for _, row := range answers[2:] {
			if err := addQueue(queues, row); err != nil {
				return Stats{}, failed("stats", "", err)
			}
		}
	}
	for _, s := range queues {
		sum.Queues = append(sum.Queues, *s)
	}
	slices.SortFunc(sum.Queues, func(a, b QueueStats) int { return strings.Compare(a.Queue, b.Queue) })
	return sum, nil
}

func addQueue(queues map[string]*QueueStats, row any) error {
	n, err := readCounts(row, 1)
	if err != nil {
		return err
	}
	name := text(row.([]any)[0])
	s := queues[name]
	if s == nil {
		s = &QueueStats{Queue: name}
		queues[name] = s
	}
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
	s.Rated = s.Rated || n["rate"] > 0
	return nil
}

// readCounts reads name, number, … from an element on.
func readCounts(answer any, from int) (map[string]int64, error) {
	words, err := list(answer, nil, from)
	if err != nil {
		return nil, err
	}
	if (len(words)-from)%2 != 0 {
		return nil, fmt.Errorf("unexpected answer %.100v", words)
	}
	counts := map[string]int64{}
	for i := from; i < len(words); i += 2 {
		counts[text(words[i])] = number(words[i+1])
	}
	return counts, nil
}
