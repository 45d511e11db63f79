package plan

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/clip"
)

// usualFactor is the default factor of an adaptive time.
const usualFactor = 1.5

// adapt reads how an adaptive time is made. It has a least and a most time, so that figures of bad days cannot make it useless.
func (r *reader) adapt(of *object, times *Times) (a Adapt) {
	t := of.get("adaptive")
	if t == nil {
		return a
	}
	if !times.Total.Adaptive && !times.Attempt.Adaptive && !times.Line.Adaptive {
		r.at(t, "belongs to a time that is adaptive: write timeout: adaptive, or attempt_timeout: adaptive")
	}
	if times.Line.Adaptive {
		r.at(of.get("queue_timeout"), "cannot be adaptive: the figures are of how long tasks run, not of how long they are in line")
	}
	o := r.object(t, "adaptive")
	o.need("least", "give the shortest time")
	o.need("most", "give the longest time")
	a = Adapt{Least: o.time("least"), Most: o.time("most"), Factor: usualFactor}
	if a.Least > a.Most && o.get("most") != nil {
		r.at(t, "least is longer than most")
	}
	if t := o.get("factor"); t != nil {
		n, _ := t.value.(json.Number)
		f, err := n.Float64()
		if low, high, _ := rangeOf(o.typeOf("factor")); err != nil || !(f >= float64(low) && f <= float64(high)) {
			r.at(t, "must be a number from %d to %d", low, high)
		}
		a.Factor = f
	}
	return a
}

// AdaptiveKinds returns the kinds of tasks with an adaptive time.
func (d *Definition) AdaptiveKinds() []string {
	kinds := map[string]bool{}
	for _, x := range d.Templates {
		for _, c := range x.Calls() {
			times, action := d.Times(c), d.Action(c)
			if action != nil && (times.Total.Adaptive || times.Attempt.Adaptive) {
				kinds[action.Kind()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// checkAdaptive checks that there are figures for an adaptive time: only tasks that workers run have them.
func (r *reader) checkAdaptive(c *Call) {
	times, action := r.d.Times(c), r.d.Action(c)
	if !times.Total.Adaptive && !times.Attempt.Adaptive {
		return
	}
	if action == nil || action.Kind() == "" {
		r.at(r.places[c], "has an adaptive time, and no worker runs it, so that there are no figures: give a time")
	}
}

// Preset is a recommended time. A definition has it only if it names it.
type Preset struct {
	Name        string
	Least, Most time.Duration // a definition that names it gets Most
	Why         string
}

// Presets are the recommended times of attempts.
var Presets = []Preset{
	{"llm_call", 2 * time.Minute, 5 * time.Minute, "Most calls take seconds, and more if the provider limits their rate"},
	{"workflow_call", 30 * time.Minute, time.Hour, "It depends on what the called flow does"},
	{"mcp_tool", 30 * time.Second, 2 * time.Minute, "A tool answers fast, and the network takes its time"},
	{"http_request", 30 * time.Second, 2 * time.Minute, "A call of another service over a network"},
	{"update_context", 5 * time.Second, 30 * time.Second, "It only computes"},
}

// preset returns the time of a preset.
func (o *object) preset(t *tree, name string) Span {
	var names []string
	for _, p := range Presets {
		if p.Name == name {
			return Span{Set: true, Time: p.Most}
		}
		names = append(names, p.Name)
	}
	advice := "there is " + strings.Join(names, ", ")
	if near := o.r.nearest(name, names); near != "" {
		advice = "did you mean " + near + "?"
	}
	o.r.at(t, "there is no preset %q: %s", clip.Text(name, quoted), advice)
	return Span{}
}
