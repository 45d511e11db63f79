package lines

import (
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// Queue is a queue. It uses the names of curfew_stats. Limits are over all partitions.
type Queue struct {
	Queue      string        `json:"queue"`
	Ready      int64         `json:"ready"`
	Running    int64         `json:"running"`
	Waiting    int64         `json:"waiting"`
	Held       int64         `json:"held,omitempty"`
	Dead       int64         `json:"dead"`
	Paused     int           `json:"paused"`
	MaxRunning int64         `json:"max_running,omitempty"`
	MaxLength  int64         `json:"max_length,omitempty"`
	Rate       int           `json:"rate,omitempty"`
	Per        time.Duration `json:"per_ms,omitempty"`
	Burst      int           `json:"burst,omitempty"`
	Enqueued   int64         `json:"enqueued"`
	Completed  int64         `json:"completed"`
	Failed     int64         `json:"failed"`
	Cancelled  int64         `json:"cancelled"`
	TimedOut   int64         `json:"timed_out"`
	Refused    int64         `json:"refused,omitempty"`
	Workers    *int64        `json:"workers,omitempty"` // live ones that serve it; nil if it was not read, or some workers do not publish their queues
}

// OfQueue returns the line of a queue, without the number of its workers.
func OfQueue(s queue.QueueStats) Queue {
	l := Queue{Queue: s.Queue, Ready: s.Ready, Running: s.Running, Waiting: s.Waiting, Held: s.Held, Dead: s.Dead, MaxRunning: s.MaxRunning, MaxLength: s.MaxLength,
		Rate: s.Rate.N, Per: s.Rate.Per, Burst: s.Rate.Burst,
		Enqueued: s.Enqueued, Completed: s.Completed, Failed: s.Failed, Cancelled: s.Cancelled, TimedOut: s.TimedOut, Refused: s.Refused}
	if s.Paused {
		l.Paused = 1
	}
	return l
}

// With counts the workers that serve the queue. workers are all that live.
func (l Queue) With(workers []inspect.Worker) Queue {
	if inspect.CrewOf(workers).Silent {
		return l
	}
	n := int64(0)
	for _, w := range workers {
		if w.Serves(l.Queue) && w.State != queue.WorkerDraining {
			n++
		}
	}
	l.Workers = &n
	return l
}

// WholeQueue is a queue with all figures of its tasks.
type WholeQueue struct {
	Queue
	Activity
}
