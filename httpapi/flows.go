package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

type (
	// definition is the JSON or YAML text of a flow's definition. The routes use it as the type of such a body.
	definition []byte

	definitionLines struct {
		Definitions []lines.Definition `json:"definitions"`
	}
	// storedDefinition is a version of a definition, as it was stored.
	storedDefinition struct {
		lines.Definition
		Text string `json:"text"`
	}
	checkedDefinition struct {
		Good bool        `json:"good"` // always true: an invalid definition is an error
		Plan *lines.Plan `json:"plan,omitempty"`
	}
	startBody struct {
		Parameters     json.RawMessage `json:"parameters,omitempty"`
		Version        string          `json:"version,omitempty"`
		Queue          string          `json:"queue,omitempty"`
		ID             string          `json:"id,omitempty"`
		IdempotencyKey string          `json:"idempotency_key,omitempty"`
		Timeout        *int64          `json:"timeout_ms,omitempty"` // without it, the run has the time of its definition
	}
	resumeRunBody struct {
		Node    string          `json:"node"`
		Payload json.RawMessage `json:"payload,omitempty"`
	}
	graphLine struct {
		ID    string `json:"id"`
		Graph string `json:"graph"`
	}
)

func flowRoutes() []route {
	list := listRoutes()[0].Query
	var ofRuns []param
	for _, p := range list {
		if p.Name != "kind" && p.Name != "agent" {
			ofRuns = append(ofRuns, p)
		}
	}
	get := func(id, path, summary string, answer any, serve func(*call) (any, error), query ...param) route {
		return route{ID: id, Method: http.MethodGet, Path: path, Role: Read, Summary: summary, Query: query, Answer: answer, Status: []int{200}, Serve: serve}
	}
	return []route{
		get("listFlows", "flows", "Lists the definitions of flows, with their versions", definitionLines{}, listFlows),
		{ID: "putFlow", Method: http.MethodPut, Path: "flows", Role: Operate, Summary: "Stores a definition, as a new version. The same text again stores nothing: the status is 200. A version that is stored with another text is refused with 409. The body is JSON or YAML; all its faults are in the answer",
			Body: definition{}, Answer: lines.Put{}, Status: []int{201, 200}, Errors: []int{409}, Serve: putFlow},
		{ID: "checkFlow", Method: http.MethodPost, Path: "flow-check", Role: Read, Summary: "Checks a definition as putFlow does, and stores nothing. The body is JSON or YAML; all its faults are in the answer",
			Query: []param{{Name: "explain", Type: flag, Doc: "add when each node ends at the latest, and what it waits for"}},
			Body:  definition{}, Answer: checkedDefinition{}, Status: []int{200}, Serve: checkFlow},
		get("getFlow", "flows/{id}", "Returns the text of a definition", storedDefinition{}, getFlow, param{Name: "version", Type: text, Doc: "this version; without it, the newest"}),
		get("listRuns", "flows/{id}/runs", "Lists the runs of a definition, a page at a time, as listTasks does", inspect.ListPage{}, listRuns, ofRuns...),
		{ID: "startRun", Method: http.MethodPost, Path: "flows/{id}/runs", Role: Produce, Bare: true, Summary: "Starts a run of a definition. If its id or idempotency key is known, nothing is created, and the answer is the first run",
			Body: startBody{}, Answer: lines.Enqueued{}, Status: []int{201, 200}, Errors: []int{409}, Serve: startRun},
		get("getRun", "runs/{id}", "Returns a run with its nodes: the phase of each one, its attempts, and when it is out of time", (*lines.Run)(nil), getRun,
			param{Name: "deep", Type: flag, Default: "true", Doc: "the runs within the run too"}, hidePayloads),
		get("getRunGraph", "runs/{id}/graph", "Returns a run as a graph for Mermaid", graphLine{}, getRunGraph),
		{ID: "resumeRun", Method: http.MethodPost, Path: "runs/{id}/resume", Role: Produce, Summary: "Ends the wait of a node of a run with a payload. The node is its key, as getRun has it; for one of a part, with the key of the part and a slash before it",
			Body: resumeRunBody{}, Answer: lines.Outcome{}, Status: []int{200}, Errors: []int{409}, Serve: resumeRun},
	}
}

func listFlows(c *call) (any, error) {
	definitions, err := flow.List(c, c.q)
	answer := definitionLines{[]lines.Definition{}}
	for _, d := range definitions {
		answer.Definitions = append(answer.Definitions, lines.OfDefinition(d))
	}
	return answer, err
}

// compiling waits for a place: to check a large definition takes a second of a processor, and memory. done leaves it.
func (c *call) compiling() (done func(), err error) {
	select {
	case c.server.compiles <- struct{}{}:
		return func() { <-c.server.compiles }, nil
	case <-c.Done():
		return nil, context.Cause(c)
	}
}

func putFlow(c *call) (any, error) {
	done, err := c.compiling()
	if err != nil {
		return nil, err
	}
	defer done()
	stored, err := flow.Put(c, c.q, c.raw)
	if err != nil {
		return nil, err
	}
	c.kind = kindOfRuns(stored.ID)
	if !stored.New {
		c.status = http.StatusOK
	}
	return lines.OfPut(stored), nil
}

func kindOfRuns(id string) string { return "flow." + id }

func checkFlow(c *call) (any, error) {
	c.renews = true // it changes nothing
	done, err := c.compiling()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := flow.Check(c.raw); err != nil {
		return nil, err
	}
	if !c.query.flag("explain") {
		return checkedDefinition{Good: true}, nil
	}
	plan, err := flow.Outline(c.raw)
	return checkedDefinition{true, lines.OfPlan(plan)}, err
}

// definition returns the line of the definition in the path. It must exist.
func (c *call) definition() (lines.Definition, error) {
	definitions, err := flow.List(c, c.q)
	if err != nil {
		return lines.Definition{}, err
	}
	byID := map[string]lines.Definition{}
	for _, d := range definitions {
		byID[d.ID] = lines.OfDefinition(d)
	}
	l, f := named("definition", c.path("id"), byID)
	return l, nothing(f)
}

// checkVersion refuses a version that a definition does not have. "" is the newest.
func checkVersion(l lines.Definition, field, version string) *failure {
	byVersion := map[string]bool{"": true}
	for _, v := range l.Versions {
		byVersion[v] = true
	}
	_, f := named("version of "+l.Definition, version, byVersion)
	if f != nil {
		f.of(field)
	}
	return f
}

func getFlow(c *call) (any, error) {
	l, err := c.definition()
	if err != nil {
		return nil, err
	}
	if f := checkVersion(l, "version", c.query.text("version")); f != nil {
		return nil, f
	}
	text, version, err := flow.Get(c, c.q, l.Definition, c.query.text("version"))
	if err != nil {
		return nil, err
	}
	l.Version = version
	return storedDefinition{l, string(text)}, nil
}

func listRuns(c *call) (any, error) {
	l, err := c.definition()
	if err != nil {
		return nil, err
	}
	return listOf(c, kindOfRuns(l.Definition))
}

func startRun(c *call) (any, error) {
	var body startBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	c.task, c.queue, c.kind = body.ID, body.Queue, kindOfRuns(c.path("id"))
	parameters, task, f := body.task()
	if f != nil {
		return nil, f
	}
	task.Headers = c.withTrace(nil)
	r, err := flow.Start(c, c.q, c.path("id"), parameters, body.Version, task)
	if err != nil {
		return nil, c.unstarted(body.Version, err)
	}
	c.task = r.ID
	if !r.New {
		c.status = http.StatusOK
	}
	return lines.Enqueued{ID: r.ID, Deadline: r.Deadline, New: r.New}, nil
}

// unstarted explains why a run cannot be started. If its definition or version does not exist, the error lists those
// that do.
func (c *call) unstarted(version string, err error) error {
	if !errors.Is(err, refusal.ErrNotFound) {
		return err
	}
	l, missing := c.definition()
	if missing != nil {
		return missing
	}
	if f := checkVersion(l, "version", version); f != nil {
		return f
	}
	return err
}

// task returns the parameters of a run, and the task fields that the body sets.
func (b startBody) task() (parameters map[string]any, task queue.Task, f *failure) {
	if b.Parameters != nil && jsonx.Checked(b.Parameters).Decode(&parameters) != nil {
		return nil, task, wrong("parameters", `must be an object, such as {"page":1}`)
	}
	task = queue.Task{ID: b.ID, Queue: b.Queue, IdempotencyKey: b.IdempotencyKey}
	if b.Timeout != nil {
		if *b.Timeout < 1 || *b.Timeout > longestSpan.Milliseconds() {
			return nil, task, wrong("timeout_ms", "%d must be 1 to %d: leave it out for the time of the definition", *b.Timeout, longestSpan.Milliseconds())
		}
		task.Timeout = time.Duration(*b.Timeout) * time.Millisecond
	}
	checked := task
	checked.Kind = "flow" // whether there is such a definition is found out later
	if err := checked.Check(1 << 20); err != nil {
		return nil, task, failureOf(err)
	}
	return parameters, task, nil
}

func getRun(c *call) (any, error) {
	r, err := flow.Read(c, c.q, c.id(), c.query.flag("deep"))
	if err != nil {
		return nil, err
	}
	return lines.OfRun(r, c.hides()), nil
}

func getRunGraph(c *call) (any, error) {
	r, err := flow.Read(c, c.q, c.id(), true)
	if err != nil {
		return nil, err
	}
	return graphLine{r.ID, r.Mermaid()}, nil
}

func resumeRun(c *call) (any, error) {
	var body resumeRunBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	if body.Node == "" {
		return nil, wrong("node", "must not be empty: give the key of a node that waits")
	}
	var value any
	if body.Payload != nil {
		jsonx.Checked(body.Payload).Decode(&value) // never fails: the body was checked
	}
	if err := flow.Resume(c, c.q, c.id(), body.Node, value); err != nil {
		return nil, err
	}
	return lines.Outcome{ID: c.task, Changed: true, Text: "resumed"}, nil
}

// ofFaults returns the failure for a definition that is wrong. Its sentence has the first fault.
func ofFaults(faults flow.Faults) *failure {
	sentence := "the definition is wrong"
	field := "definition"
	if len(faults) > 0 {
		sentence = faults[0].String()
		if faults[0].Path != "" {
			field = faults[0].Path
		}
	}
	if n := len(faults) - 1; n > 0 {
		sentence += fmt.Sprintf("; faults has this one and %d more", n)
	}
	f := fail(http.StatusBadRequest, "invalid", "%s", sentence).of(field)
	f.Problem.Error.Faults = lines.OfFaults(faults)
	return f
}
