// Package flow runs workflows that are written as definitions. A definition has templates with DAGs and loops, or a graph of
// nodes and transitions; it says how long each part can take, and what happens then.
//
// A run is an agent of the kind flow.<id>: enqueue a task of that kind with any client. Its nodes are tasks of ordinary kinds,
// which workers in any language run.
package flow

import (
	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/worker"
)

// Register lets a worker run all flows of its namespace. It panics after Run, as worker.Handle does.
func Register(w *worker.Worker) {
	d := &definitions{q: w.Queue(), known: map[[2]string]*plan.Definition{}}
	agentwait.Handle(w, "flow.*", d.follow)
}
