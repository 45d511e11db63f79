package flow

import (
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/queue"
)

// Fault is one thing that is wrong with a definition: the path of the value, its line in the file, and a sentence.
type Fault = plan.Fault

// Faults are all faults of a definition. It is the error of Put and Check.
type Faults = plan.Faults

// Phase is the state of a run or a node, in the words of definitions.
type Phase string

// The phases of runs and nodes.
const (
	Unknown   Phase = ""          // the record of its task has been removed
	Created   Phase = "Created"   // it waits for what is before it, or for its next attempt
	Ready     Phase = "Ready"     // in line
	Running   Phase = "Running"   // a worker runs it
	Suspended Phase = "Suspended" // it waits for its nodes, or for a signal
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed" // for good: its handler says that it can never succeed
	Error     Phase = "Error"
	Timeout   Phase = "Timeout"
	Cancelled Phase = "Cancelled"
)

// Token is the state of a node, in the words of graphs.
type Token string

// The states of tokens. A node of a graph that no token has reached has none: "".
const (
	TokenPending    Token = "pending"
	TokenDispatched Token = "dispatched"
	TokenExecuting  Token = "executing"
	TokenSiblings   Token = "waiting_for_siblings"
	TokenCompleted  Token = "completed"
	TokenFailed     Token = "failed"
	TokenTimedOut   Token = "timed_out"
	TokenCancelled  Token = "cancelled"
)

// Run is a run as it stands, or a part of one.
type Run struct {
	ID       string
	Flow     string
	Version  string // "" before the first claim
	Template string // of a part: the template that it follows
	Phase    Phase
	Record   *queue.Record // of its agent
	At       time.Time     // when it was read, on the clock of Redis
	Removed  int           // how many of its tasks are no longer stored: their retention is over

	// Nodes are its nodes in the order of the definition. A node that ran several times, in a loop or for the tokens of a
	// fan-out, is there for each time, in the order they began.
	Nodes []*Node

	template *plan.Template
}

// Node is a node of a run.
type Node struct {
	Name  string
	Key   string // unique in its run; Name, or Name with a place such as work/b3
	Phase Phase
	Token Token

	Kind     string // of its task, "" if it has none: echo and set are done by the run itself
	Template string // that it follows, with nodes of its own
	Task     string // the id of its newest task, "" before it has one
	Attempts int
	WaitsFor []string // nodes that must end before it begins
	Began    time.Time
	Ended    time.Time
	Deadline time.Time // when it is out of time; zero: never, or not known yet
	Msg      string    // why it has not succeeded
	Reason   string    // workflow_timeout if the time of its run was over, synchronization_timeout if that of a fan-in

	Part *Run // of a template or a workflow_call: the run that it is, if it was read

	bound    bound // what the deadline belongs to
	call     *plan.Call
	record   *queue.Record // of its newest task
	siblings *siblings     // of a token of a fan-out that meets
}

// The values of [Node.Reason].
const (
	ReasonWorkflowTimeout        = "workflow_timeout"
	ReasonSynchronizationTimeout = "synchronization_timeout"
)

// bound says what the deadline of a node belongs to.
type bound int

const (
	ofNothing  bound = iota
	ofTask           // the task of the node
	ofAttempt        // its attempt
	ofLine           // its time in line
	ofSiblings       // the fan-in at which tokens wait
	ofRun            // the run, or a run around it
)
