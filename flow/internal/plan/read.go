package plan

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/internal/expr"
	"github.com/curfew-dev/curfew/refusal"
)

// The variables that expressions can read, by where they are.
var (
	ofRun   = []string{"inputs"}
	ofDAG   = []string{"inputs", "tasks"}
	ofLoop  = []string{"inputs", "item", "index", "last"}
	ofGraph = []string{"inputs", "state", "nodes", "_branch"}
)

// reader reads the tree of a definition into a plan.
type reader struct {
	faulty
	d         *Definition
	places    map[any]*tree // where parts of the plan are in the file
	values    map[*expr.Template]source
	entry     *tree    // the name of the first template
	templates []string // their names
	takes     map[*Template]*inputs
	compared  int // names, to find what was meant
	compiled  int // expressions
	most      int // of them
}

// maxExpressions is the most expressions of a new definition. To compile one takes about a tenth of a millisecond, and whoever
// may read a namespace may have a definition checked.
const maxExpressions = 5000

// few counts expressions at t that are about to be compiled, and reports whether they are within the bound.
func (r *reader) few(t *tree, n int) bool {
	previous := r.compiled
	if r.compiled += n; r.compiled > r.most && previous <= r.most {
		r.at(t, "is beyond the %d expressions that a definition can have: divide it, and call one part from the other", r.most)
	}
	return r.compiled <= r.most
}

// source is where a value with expressions is in the file, and what its expressions can read.
type source struct {
	t         *tree
	variables []string
}

// goodVersion is a version of a definition, as lua/check/values.lua has it.
var goodVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// version checks the text at t, which is a version.
func (r *reader) version(t *tree, version string) {
	if t != nil && version != "" && !goodVersion.MatchString(version) {
		r.at(t, "%q must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit", clip.Text(version, quoted))
	}
}

// CheckVersion returns an error for a text that cannot be the version of a definition.
func CheckVersion(version string) error {
	if version != "" && !goodVersion.MatchString(version) {
		return refusal.Invalid("version", "%q must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit", clip.Text(version, quoted))
	}
	return nil
}

// GoodName reports whether a definition can have this id.
func GoodName(id string) bool { return goodName.MatchString(id) }

func newReader() *reader {
	return &reader{d: &Definition{Templates: map[string]*Template{}}, places: map[any]*tree{}, values: map[*expr.Template]source{}, takes: map[*Template]*inputs{}, most: math.MaxInt}
}

// Read reads a definition in JSON or YAML. Its error is Faults if the file can be read as such: all that is wrong.
func Read(text []byte) (*Definition, error) { return read(text, math.MaxInt) }

// ReadNew is Read for a definition that is not stored yet. It has maxExpressions at most.
func ReadNew(text []byte) (*Definition, error) { return read(text, maxExpressions) }

func read(text []byte, most int) (*Definition, error) {
	t, err := parse(text)
	if err != nil {
		return nil, Faults{unreadable(err)}
	}
	r := newReader()
	r.most = most
	r.definition(t)
	r.check()
	if err := r.all(); err != nil {
		return nil, err
	}
	return r.d, nil
}

// atLine matches the error of a file that is no JSON or YAML.
var atLine = regexp.MustCompile(`^line (\d+): ((?s:.*))$`)

// unreadable returns the fault of a file that cannot be read as JSON or YAML.
func unreadable(err error) Fault {
	if m := atLine.FindStringSubmatch(err.Error()); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil {
			return Fault{Line: line, Text: m[2]}
		}
	}
	return Fault{Line: 1, Text: err.Error()}
}

// template compiles the expressions in a value.
func (r *reader) template(t *tree, variables []string) *expr.Template {
	n := 0
	for leaf := range t.texts {
		if text, ok := leaf.value.(string); ok {
			n += strings.Count(text, "{{")
		}
	}
	if !r.few(t, n) {
		return nil
	}
	compiled, err := expr.CompileTemplate(t.plain(), variables)
	if err != nil {
		r.wrongTexts(t, err)
		return nil
	}
	r.values[compiled] = source{t, variables}
	return compiled
}

// wrongTexts reports each text of a value whose expressions cannot be compiled.
func (r *reader) wrongTexts(t *tree, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			r.wrongTexts(t, e)
		}
		return
	}
	var inside *expr.PathError
	if errors.As(err, &inside) {
		r.wrongTexts(t.at(inside.Path), inside.Err)
		return
	}
	r.at(t, "%v", err)
}

func (r *reader) definition(t *tree) {
	o, d := r.object(t, "definition"), r.d
	d.ID, d.Version, d.Description = o.name("id"), o.text("version"), o.text("description")
	r.version(o.get("version"), d.Version)
	o.only("spec", "nodes")
	o.only("timeout", "timeout_ms")
	d.Timeout = o.span("timeout").Over(o.ms("timeout_ms"))
	d.Fails = o.word("on_timeout") == "fail"
	d.Hooks = r.hooks(o)
	d.Inputs = r.inputs(o, ofRun)
	if d.MaxNodes = o.number("max_nodes"); d.MaxNodes == 0 {
		d.MaxNodes = maxNodes
	}
	switch spec := o.get("spec"); {
	case spec != nil:
		for _, name := range []string{"transitions", "actions", "initial", "output"} {
			if t := o.get(name); t != nil {
				r.at(t, "belongs to a graph, and the definition has spec: give nodes instead of spec, or leave it out")
			}
		}
		r.spec(o, r.object(spec, "spec"))
	case o.get("nodes") != nil:
		r.graph(o)
	default:
		o.fault("spec and nodes are missing: give the one or the other")
	}
	if !d.Timeout.Set {
		d.Timeout = Span{Set: true, Time: DefaultTimeout}
	}
}

// spec reads the fields below spec. A field that the definition itself sets must not be there again.
func (r *reader) spec(o, spec *object) {
	d := r.d
	for _, name := range []string{"timeout", "on_timeout", "inputs", "hooks"} {
		if t := spec.get(name); t != nil && (o.get(name) != nil || name == "timeout" && o.get("timeout_ms") != nil) {
			r.at(t, "is given by the definition too: give it once")
		}
	}
	d.Timeout = d.Timeout.Over(spec.span("timeout"))
	d.Fails = d.Fails || spec.word("on_timeout") == "fail"
	if spec.get("hooks") != nil {
		d.Hooks = r.hooks(spec)
	}
	if spec.get("inputs") != nil {
		d.Inputs = r.inputs(spec, ofRun)
	}
	r.entry = spec.need("entrypoint", "name the template with which a run begins")
	d.Entry = spec.name("entrypoint")
	spec.need("templates", "a flow has at least one")
	for _, t := range spec.list("templates") {
		r.readTemplate(t)
	}
}

func (r *reader) hooks(of *object) (h Hooks) {
	t := of.get("hooks")
	if t == nil {
		return h
	}
	o := r.object(t, "hooks")
	for _, section := range []struct {
		field string
		hook  *Hook
	}{{"on_success", &h.Success}, {"on_failure", &h.Failure}, {"on_timeout", &h.Timeout}, {"on_cancel", &h.Cancel}} {
		if t := o.get(section.field); t != nil {
			hook := r.object(t, "hook")
			hook.need("kind", "name the kind of the task")
			*section.hook = Hook{Kind: hook.kind("kind"), Queue: hook.queue("queue")}
		}
	}
	return h
}

// inputs reads inputs.parameters.
func (r *reader) inputs(of *object, variables []string) []Parameter {
	t := of.get("inputs")
	if t == nil {
		return nil
	}
	return r.parameters(r.object(t, "inputs"), variables, false)
}

// given reads the inputs that a call gives.
func (r *reader) given(of *object, variables []string) []Parameter {
	t := of.get("inputs")
	if t == nil {
		return nil
	}
	return r.parameters(r.object(t, "arguments"), variables, true)
}

// outputs reads the declared outputs of a DAG.
func (r *reader) outputs(of *object) []Parameter {
	t := of.get("outputs")
	if t == nil {
		return nil
	}
	return r.parameters(r.object(t, "outputs"), ofDAG, true)
}

func (r *reader) parameters(of *object, variables []string, given bool) (all []Parameter) {
	seen := map[string]bool{}
	for _, t := range of.list("parameters") {
		o := r.object(t, strings.TrimPrefix(of.typeOf("parameters"), "[]"))
		o.need("name", "a parameter has a name")
		if given {
			o.need("value", "give the value")
		}
		p := Parameter{Name: o.name("name"), Value: o.value("value", variables)}
		if seen[p.Name] {
			o.fault("two parameters have the name %s", p.Name)
		}
		seen[p.Name] = true
		all = append(all, p)
	}
	return all
}

// readTemplate reads a template. A DAG or a loop can have the name of the template.
func (r *reader) readTemplate(t *tree) {
	o := r.object(t, "template")
	x := &Template{Name: o.nodeName("name"), Inputs: r.inputs(o, ofRun), Times: r.times(o)}
	r.places[x] = t
	o.only("dag", "loop", "task", "executor")
	if t := o.get("dag"); t != nil {
		dag := r.object(t, "dag")
		x.Name = r.sameName(o, dag, x.Name)
		x.DAG = &DAG{Outputs: r.outputs(o)}
		for _, t := range dag.list("tasks") {
			x.DAG.Nodes = append(x.DAG.Nodes, r.dagNode(t))
		}
		if dag.need("tasks", "a DAG has nodes") != nil && len(x.DAG.Nodes) == 0 {
			r.at(dag.get("tasks"), "is empty: a DAG has at least one node")
		}
	}
	if t := o.get("outputs"); t != nil && x.DAG == nil {
		r.at(t, "is for a dag: a loop yields what its rounds yield, and a leaf what its task yields")
	}
	if t := o.get("loop"); t != nil {
		loop := r.object(t, "loop")
		x.Name = r.sameName(o, loop, x.Name)
		x.Loop = r.loop(loop)
	}
	if t := o.get("executor"); t != nil {
		x.Action = r.executor(t, ofRun)
	}
	if t := o.get("task"); t != nil {
		r.task(x, r.object(t, "task"))
	}
	if x.DAG == nil && x.Loop == nil && x.Action == nil && x.Wraps == nil && !o.faulty("dag", "loop", "task", "executor") {
		o.fault("dag, loop, task and executor are missing: say what the template does")
	}
	if x.Container() && (x.Times.Attempt.Set || x.Times.Line.Set) {
		o.fault("attempt_timeout and queue_timeout are for leaves: give timeout, which bounds the whole template")
	}
	if x.Name == "" {
		if o.get("name") == nil {
			o.fault("name is missing: others call the template by it")
		}
		return
	}
	if existing := r.d.Templates[x.Name]; existing != nil {
		o.fault("two templates have the name %s", x.Name)
		return
	}
	r.d.Templates[x.Name] = x
}

// faulty reports whether one of these fields is present. Then its reader has reported the error
// already.
func (o *object) faulty(fields ...string) bool {
	return slices.ContainsFunc(fields, func(name string) bool { return o.get(name) != nil })
}

// sameName returns the name of a template, which its body can have instead.
func (r *reader) sameName(template, body *object, name string) string {
	inside := body.nodeName("name")
	switch {
	case name == "":
		return inside
	case inside != "" && inside != name:
		r.at(body.get("name"), "is %s, and the template has the name %s: give one of them", inside, name)
	}
	return name
}

func (r *reader) task(x *Template, o *object) {
	o.only("template", "executor")
	switch {
	case o.get("template") != nil:
		x.Wraps = &Call{Name: "task", Template: o.name("template"), Inputs: r.given(o, ofRun)}
		r.places[x.Wraps] = o.t
	case o.get("executor") != nil:
		x.Action = r.executor(o.get("executor"), ofRun)
		if t := o.get("inputs"); t != nil {
			r.at(t, "belongs to the template: its task has them")
		}
	default:
		o.fault("template and executor are missing: say what the task does")
	}
}

func (r *reader) dagNode(t *tree) *Call {
	o := r.object(t, "dag node")
	o.need("name", "a node has a name")
	c := r.call(o, o.nodeName("name"), ofDAG)
	c.After = o.names("dependencies")
	return c
}

// call reads the fields that nodes of a DAG and bodies of loops share.
func (r *reader) call(o *object, name string, variables []string) *Call {
	c := &Call{Name: name, Template: o.name("template"), Inputs: r.given(o, variables), Times: r.times(o), Retry: r.retry(o), Excuses: r.endings(o)}
	r.places[c] = o.t
	o.only("template", "executor")
	switch {
	case o.get("executor") != nil:
		c.Action = r.executor(o.get("executor"), variables)
	case o.get("template") == nil:
		o.fault("template and executor are missing: say what runs here")
	}
	return c
}

func (r *reader) loop(o *object) *Loop {
	l := &Loop{Items: o.value("items", ofRun), Until: o.expression("until", ofLoop), Most: o.number("limit"), Parallel: max(o.number("parallel"), 1)}
	o.only("items", "until")
	switch {
	case o.get("items") == nil && o.get("until") == nil:
		o.fault("items and until are missing: say how often the loop runs")
	case o.get("until") != nil && o.get("limit") == nil:
		o.fault("limit is missing: a loop with until needs a bound")
	case o.get("until") != nil && o.get("parallel") != nil:
		r.at(o.get("parallel"), "is for items: the rounds of until run one after the other")
	}
	if l.Most == 0 {
		l.Most = usualRounds
	}
	if t := o.need("task", "say what runs in each round"); t != nil {
		l.Body = r.call(r.object(t, "loop body"), "round", ofLoop)
	}
	return l
}

// usualRounds is the default limit of a loop over items.
const usualRounds = 10_000

// times reads the limits of a template or of a call.
func (r *reader) times(o *object) (times Times) {
	times.Total, times.Attempt, times.Line = o.span("timeout"), o.span("attempt_timeout"), o.span("queue_timeout")
	times.Adapt = r.adapt(o, &times)
	if o.mayHave("timeout_ms") {
		o.only("timeout_ms", "attempt_timeout")
		o.only("timeout_ms", "queue_timeout")
		if ms := o.ms("timeout_ms"); ms.Set {
			times.Attempt, times.Line = ms, ms
		}
	}
	if o.mayHave("on_timeout") {
		word := o.word("on_timeout")
		times.Said, times.Retries = word != "", word == "retry"
	}
	return times
}

func (r *reader) retry(of *object) (retry Retry) {
	t := of.get("retry")
	if t == nil {
		return retry
	}
	o := r.object(t, "retry")
	retry.Set = true
	o.need("limit", "say how often it is tried again")
	retry.Limit = o.number("limit")
	if o.get("expression") != nil {
		retry.Expression = o.text("expression") // check compiles it: it names the node
	}
	if t := o.get("backoff"); t != nil {
		b := r.object(t, "backoff")
		retry.Backoff = Backoff{Delay: b.time("delay"), Max: b.span("max").Time, Exponential: b.bool("exponential")}
		if retry.Backoff.Delay == 0 && b.get("delay") == nil {
			b.fault("delay is missing: say how long the first pause is")
		}
	}
	return retry
}

func (r *reader) endings(of *object) Endings {
	t := of.get("continueOn")
	if t == nil {
		return Endings{}
	}
	o := r.object(t, "continueOn")
	return Endings{Failed: o.bool("failed"), Error: o.bool("error"), Timeout: o.bool("timeout"), Cancelled: o.bool("cancelled")}
}

// path splits a path such as state.results. It must begin with one of some names.
func (r *reader) path(t *tree, begins string) []string {
	text := r.text(t)
	names := strings.Split(text, ".")
	for _, name := range names {
		if !goodName.MatchString(strings.TrimPrefix(name, "_")) {
			r.at(t, "%q must be names with dots between them, such as %s.total", clip.Text(text, quoted), begins)
			return nil
		}
	}
	if !strings.HasPrefix(text+".", begins+".") {
		r.at(t, "must begin with %s", begins)
		return nil
	}
	return names[1:]
}
