package plan

import (
	"regexp"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/clip"
)

// The actions that come with flows.
const (
	Echo         = "echo"
	Sleep        = "sleep"
	Wait         = "wait"
	Set          = "set"
	HTTPRequest  = "http_request"
	WorkflowCall = "workflow_call"

	updateContext = "update_context" // the name of Set in a list of actions
)

// OfUsers reports whether an action is a task whose kind belongs to the users.
func (a *Action) OfUsers() bool {
	switch a.Type {
	case Echo, Sleep, Wait, Set, HTTPRequest, WorkflowCall:
		return false
	}
	return true
}

// Kind returns the kind of the task that a worker runs for this action, or "" if no worker runs it.
func (a *Action) Kind() string {
	switch a.Type {
	case Echo, Sleep, Wait, Set:
		return ""
	case HTTPRequest:
		return "flow/" + HTTPRequest
	case WorkflowCall:
		return "flow." + a.Flow
	}
	return a.Type
}

// options lists the fields of an executor that only some types have. The needed ones come first, with a +.
var options = map[string][]string{
	Echo:         nil,
	Sleep:        {"+duration"},
	Wait:         {"signal"},
	Set:          {"+values"},
	HTTPRequest:  {"+url", "method", "headers", "body", "queue", "priority"},
	WorkflowCall: {"+workflow", "version", "queue", "priority"},
	"":           {"queue", "priority"}, // the kind of a task
}

// kindName is a valid kind of a task, as package queue defines it.
var kindName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)

// queueName is a valid name of a queue.
var queueName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// queue returns the name of a queue.
func (o *object) queue(field string) string {
	t := o.get(field)
	if t == nil {
		return ""
	}
	s := o.r.text(t)
	if s != "" && !queueName.MatchString(s) {
		o.r.at(t, "%q must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit", clip.Text(s, quoted))
	}
	return s
}

// kind returns the kind of a task.
func (o *object) kind(field string) string {
	t := o.get(field)
	if t == nil {
		return ""
	}
	s := o.r.text(t)
	if s != "" && !kindName.MatchString(s) {
		o.r.at(t, "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit", clip.Text(s, quoted))
	}
	return s
}

func (r *reader) executor(t *tree, variables []string) *Action {
	o := r.object(t, "executor")
	if o.need("type", "say what runs: echo, sleep, wait, set, http_request, workflow_call or the kind of a task") == nil {
		return &Action{}
	}
	return r.action(o, o.kind("type"), variables)
}

// action reads the fields of an action of a type, from an executor or an implementation.
func (r *reader) action(o *object, kind string, variables []string) *Action {
	a := &Action{Type: kind, Queue: o.queue("queue"), Priority: o.number("priority")}
	r.places[a] = o.t
	may, exists := options[kind]
	if !exists {
		may = options[""]
	}
	if o.shape == "implementation" {
		may = ofImplementation(may)
	}
	var members []member
	for _, f := range shapes[o.shape] {
		t := o.get(f.Name)
		allowed, needed := slices.Contains(may, f.Name), slices.Contains(may, "+"+f.Name)
		switch {
		case f.Name == "type":
		case t == nil && needed:
			o.fault("%s is missing, which %s needs", f.Name, kind)
		case t == nil:
		case !allowed && !needed:
			r.at(t, "does not belong to %s", kind)
		default:
			if f.Type == "text" && kind != WorkflowCall {
				o.text(f.Name)
			}
			r.checkLiteral(kind, f.Name, t)
			members = append(members, member{f.Name, t})
		}
	}
	switch kind {
	case WorkflowCall:
		a.Flow, a.Version = o.firstName("workflow", "workflow_def_id"), o.firstText("version", "workflow_def_version")
		for _, name := range []string{"version", "workflow_def_version"} {
			if o.mayHave(name) {
				r.version(o.get(name), a.Version)
			}
		}
	case Wait:
		o.nodeName("signal")
		fallthrough
	default:
		options := *o.t
		options.value = members
		a.Options = r.template(&options, variables)
	}
	return a
}

// ofImplementation returns the options by their names in an implementation.
func ofImplementation(options []string) (all []string) {
	names := strings.NewReplacer("workflow", "workflow_def_id", "version", "workflow_def_version")
	for _, option := range options {
		all = append(all, names.Replace(option))
	}
	return all
}

// firstName returns the name in the one of some fields that the shape has.
func (o *object) firstName(fields ...string) string {
	for _, field := range fields {
		if o.mayHave(field) {
			return o.name(field)
		}
	}
	return ""
}

// firstText is firstName for a text.
func (o *object) firstText(fields ...string) string {
	for _, field := range fields {
		if o.mayHave(field) {
			return o.text(field)
		}
	}
	return ""
}
