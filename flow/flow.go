// Package flow runs workflows that are written as definitions. A definition consists of templates
// with DAGs and loops, or of a graph of nodes and transitions. It sets the time limit of each part,
// and the effect of a timeout.
//
// A run is an agent of the kind flow.<id>: enqueue a task of that kind with any client. Its nodes
// are tasks of ordinary kinds, which workers in any language run.
package flow

import (
	"context"
	"net/netip"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/flow/internal/httprequest"
	"github.com/curfew-dev/curfew/worker"
)

// Config configures how a worker runs flows.
type Config struct {
	// Allow lists addresses of private networks that http_request may connect to. It may always
	// connect to public addresses. By default private addresses are refused, so that authors of
	// definitions cannot reach the servers next to the worker.
	Allow []netip.Prefix
}

// Register makes a worker run all flows of its namespace, and the requests of their nodes. It panics
// after Run, as worker.Handle does.
func Register(w *worker.Worker) { RegisterWith(w, Config{}) }

// RegisterWith is Register with a configuration.
func RegisterWith(w *worker.Worker, c Config) {
	d := newDefinitions(w.Queue())
	agentwait.Handle(w, "flow.*", d.follow)
	worker.Handle(w, kindHTTP, request(httprequest.New(c.Allow, d.q.MaxBytes()-reserve)))
}

// request returns the handler of http_request.
func request(client *httprequest.Client) func(context.Context, httprequest.Request) (outputsOf[*httprequest.Response], error) {
	return func(ctx context.Context, in httprequest.Request) (out outputsOf[*httprequest.Response], err error) {
		out.Outputs.Parameters, err = client.Do(ctx, in)
		return out, err
	}
}
