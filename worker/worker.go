package worker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/curfew-dev/curfew/internal/logonce"
	"github.com/curfew-dev/curfew/queue"
)

// Worker takes tasks from queues and runs their handlers. Make a worker with New, register handlers,
// and call Run once.
type Worker struct {
	q        *queue.Queue
	config   Config
	id       string
	number   int64 // among the workers of the process
	log      *slog.Logger
	counts   counts
	kindLog  throttle // of kinds without a handler, by kind
	errorLog throttle // of errors without an end, by partition

	mu         sync.Mutex // guards the registrations, which end with Run
	ran        bool
	registered map[string]Handler
	agents     map[string]bool           // the kinds of registered whose handlers are agents
	defaults   map[string]queue.Defaults // by kind
	homes      map[string]string         // by kind, the queue of its tasks
	middleware []func(Handler) Handler

	// Set by Run before anything starts.
	handlers   handlers // with their middleware
	queues     queueWeights
	slots      *slots
	isolation  isolation
	partitions []*partition
	about      string          // see description
	root       context.Context // the parent of the contexts of all handlers
	fetchCtx   context.Context // for fetches: it ends when shutdown begins
	end        context.CancelFunc
	endOnce    sync.Once
	callCtx    context.Context // for the calls that shutdown still needs: it ends after the handlers
	stopping   atomic.Bool     // no more tasks are taken
	drainSteps chan struct{}   // see drainStep
	failed     chan error      // the error that ends Run, at most one: see fail
	failOnce   sync.Once
	background sync.WaitGroup // the worker's goroutines except those of handlers
}

// made counts the workers of the process.
var made atomic.Int64

// New returns a worker. It does nothing before Run. If the config is invalid, Run returns an error.
func New(q *queue.Queue, config Config) *Worker {
	config.complete(q)
	return &Worker{
		q: q, config: config, id: newID(config.Name), number: made.Add(1), log: config.Logger,
		registered: map[string]Handler{}, agents: map[string]bool{}, defaults: map[string]queue.Defaults{}, homes: map[string]string{},
		drainSteps: make(chan struct{}, 1), failed: make(chan error, 1),
		kindLog: throttle{every: logonce.Reminder}, errorLog: throttle{every: logonce.Reminder},
	}
}

// ID returns the worker's id in Redis. No two workers have the same id.
func (w *Worker) ID() string { return w.mustBeMade().id }

// Queue returns the namespace that the worker takes tasks from.
func (w *Worker) Queue() *queue.Queue { return w.mustBeMade().q }
