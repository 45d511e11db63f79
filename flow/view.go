package flow

import (
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/queue"
)

// Fault is an error in a definition: the path of the value, its line in the file, and a sentence.
type Fault = plan.Fault

// Faults are all faults of a definition, and the error of Put and Check.
type Faults = plan.Faults

// Phase is the state of a run or a node, in the words of definitions.
type Phase string

// The phases of runs and nodes.
const (
	Unknown   Phase = ""          // the record of its task has been removed
	Created   Phase = "Created"   // waits for earlier nodes, or for its next attempt
	Ready     Phase = "Ready"     // in line
	Running   Phase = "Running"   // a worker runs it
	Suspended Phase = "Suspended" // waits for its nodes, or for a signal
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed" // permanently: its handler declared that it can never succeed
	Error     Phase = "Error"
	Timeout   Phase = "Timeout"
	Cancelled Phase = "Cancelled"
)

// Token is the state of a node, in the words of graphs.
type Token string

// The states of tokens. A node of a graph that no token has reached has the state "".
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

// Run is the present state of a run, or of a part of one.
type Run struct {
	ID       string
	Flow     string
	Version  string // "" before the first claim
	Template string // of a part: the template that it follows
	Phase    Phase
	Record   *queue.Record // of its agent
	At       time.Time     // the instant of the read, on the clock of Redis
	Removed  int           // number of its tasks that are no longer stored, because their retention is over

	// Nodes are the nodes in the order of the definition. A node that ran several times, in a loop
	// or for the tokens of a fan-out, is listed for each time, in the order in which they began.
	Nodes []*Node

	template *plan.Template
}

// Node is a node of a run.
type Node struct {
	Name  string
	Key   string // unique in its run; Name, or Name with a place such as work/b3
	Phase Phase
	Token Token

	Kind     string // of its task, "" without a task: the run itself performs echo and set
	Template string // the template that it follows, which has its own nodes
	Task     string // the id of its newest task, "" before it has one
	Attempts int
	WaitsFor []string // nodes that must end before it begins
	Began    time.Time
	Ended    time.Time
	Deadline time.Time // of the node or its attempt; zero: none, or not known yet
	Msg      string    // the error of a node that has not succeeded
	Reason   string    // workflow_timeout if its run timed out, synchronization_timeout if a fan-in did

	Part *Run // of a template or a workflow_call: its own run, if that was read

	bound    bound // the limit that the deadline belongs to
	call     *plan.Call
	record   *queue.Record // of its newest task
	siblings *siblings     // of a token of a fan-out that meets
}

// The values of [Node.Reason].
const (
	ReasonWorkflowTimeout        = "workflow_timeout"
	ReasonSynchronizationTimeout = "synchronization_timeout"
)

// bound is the limit that the deadline of a node belongs to.
type bound int

const (
	ofNothing  bound = iota
	ofTask           // the task of the node
	ofAttempt        // its attempt
	ofLine           // its time in line
	ofSiblings       // the fan-in at which tokens wait
	ofRun            // the run, or a run around it
)
