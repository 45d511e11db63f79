package plan

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/internal/expr"
)

// object is an object of a definition. Its functions return the value of a field, or the zero value if the field is not there
// or wrong; a wrong one is a fault.
type object struct {
	r     *reader
	t     *tree
	shape string
	has   map[string]*tree
}

// object reads an object. Fields that its shape does not have are faults.
func (r *reader) object(t *tree, shape string) *object {
	o := &object{r: r, t: t, shape: shape, has: map[string]*tree{}}
	members, ok := t.value.([]member)
	if !ok {
		r.at(t, "must be an object, and is %s", t.kind())
		return o
	}
	var names []string
	for _, f := range shapes[shape] {
		names = append(names, f.Name)
	}
	for _, m := range members {
		o.has[m.name] = m.value
		if slices.Contains(names, m.name) {
			continue
		}
		advice := "its fields are " + strings.Join(names, ", ")
		if near := r.nearest(m.name, names); near != "" {
			advice = "did you mean " + near + "?"
		}
		r.at(m.value, "is not a field here: %s", advice)
	}
	return o
}

// get returns the value of a field, nil if it is not there. It panics if the shape has no such field.
func (o *object) get(name string) *tree {
	if !o.mayHave(name) {
		panic("the shape " + o.shape + " has no field " + name)
	}
	return o.has[name]
}

// fault is a fault of the object itself.
func (o *object) fault(format string, args ...any) { o.r.at(o.t, format, args...) }

// need returns the value of a field that must be there.
func (o *object) need(name, why string) *tree {
	t := o.get(name)
	if t == nil {
		o.fault("%s is missing: %s", name, why)
	}
	return t
}

// only reports a fault if the object has more than one of some fields.
func (o *object) only(fields ...string) {
	var names []string
	for _, name := range fields {
		if o.get(name) != nil {
			names = append(names, name)
		}
	}
	if len(names) > 1 {
		o.fault("has %s, which say the same or exclude each other: give one of them", strings.Join(names, " and "))
	}
}

func (o *object) text(name string) string {
	t := o.get(name)
	if t == nil {
		return ""
	}
	return o.r.text(t)
}

func (r *reader) text(t *tree) string {
	s, ok := t.value.(string)
	switch {
	case !ok && isNumber(t):
		r.at(t, "must be a text, and is a number: put it in quotes")
	case !ok:
		r.at(t, "must be a text, and is %s", t.kind())
	case s == "":
		r.at(t, "is empty")
	case len(s) > maxTextBytes:
		r.at(t, "has %d bytes, the limit is %d", len(s), maxTextBytes)
	}
	return s
}

// maxTextBytes is the greatest length of a text that is no value.
const maxTextBytes = 4096

func isNumber(t *tree) bool {
	_, ok := t.value.(json.Number)
	return ok
}

// goodName is a name of a template, a node or a parameter. It can be part of an expression, of the id of a task and of a kind.
var goodName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,59}$`)

func (o *object) name(field string) string {
	t := o.get(field)
	if t == nil {
		return ""
	}
	return o.r.name(t)
}

func (r *reader) name(t *tree) string {
	s := r.text(t)
	if s != "" && !goodName.MatchString(s) {
		r.at(t, "%q must be 1 to 60 of A-Z a-z 0-9 _ - and begin with a letter", clip.Text(s, quoted))
	}
	return s
}

// nodeName returns the name of a node, from which the names of its tasks are made.
func (o *object) nodeName(field string) string {
	s := o.name(field)
	switch {
	case strings.HasPrefix(s, "s-"):
		o.r.at(o.get(field), "%s begins with s-, which is for signals", s)
	case strings.Contains(s, "__"):
		o.r.at(o.get(field), "%s has __, which separates a node from its place in a run", s)
	}
	return s
}

// names returns a list of names.
func (o *object) names(field string) (all []string) {
	seen := map[string]bool{}
	for _, t := range o.list(field) {
		name := o.r.name(t)
		if seen[name] {
			o.r.at(t, "%s is given twice", name)
			continue
		}
		seen[name] = true
		all = append(all, name)
	}
	return all
}

// list returns the elements of a list.
func (o *object) list(field string) []*tree {
	t := o.get(field)
	if t == nil {
		return nil
	}
	list, ok := t.value.([]*tree)
	if !ok {
		o.r.at(t, "must be a list, and is %s", t.kind())
	}
	return list
}

// number returns a whole number, in the range that the table of fields gives.
func (o *object) number(field string) int {
	t := o.get(field)
	if t == nil {
		return 0
	}
	low, high, _ := rangeOf(o.typeOf(field))
	i, ok := t.whole()
	if !ok || i < int64(low) || i > int64(high) {
		o.r.at(t, "must be a whole number from %d to %d", low, high)
		return 0
	}
	return int(i)
}

// typeOf returns the type of a field.
func (o *object) typeOf(field string) string {
	for _, f := range shapes[o.shape] {
		if f.Name == field {
			return f.Type
		}
	}
	return ""
}

func (o *object) bool(field string) bool {
	t := o.get(field)
	if t == nil {
		return false
	}
	b, ok := t.value.(bool)
	if !ok {
		o.r.at(t, "must be true or false, and is %s", t.kind())
	}
	return b
}

// word returns a value that must be one of the words in the table of fields, "" if the field is
// missing.
func (o *object) word(field string) string {
	t := o.get(field)
	if t == nil {
		return ""
	}
	words := wordsOf(o.typeOf(field))
	s, _ := t.value.(string)
	if !slices.Contains(words, s) {
		o.r.at(t, "must be %s", strings.Join(words, " or "))
		return ""
	}
	return s
}

// maxSpan is the longest time that a definition can give.
const maxSpan = 10 * 365 * 24 * time.Hour

// span reads a duration such as "10s". null means no limit.
func (o *object) span(field string) Span {
	t := o.get(field)
	switch {
	case t == nil:
		return Span{}
	case t.value == nil:
		return Span{Set: true}
	case isNumber(t):
		o.r.at(t, `must be a text such as "30s", and is a number: a number of ms is %s_ms, where there is one`, field)
		return Span{}
	}
	text := o.r.text(t)
	if text == "adaptive" && o.mayHave("adaptive") {
		o.need("adaptive", "an adaptive time is between a least and a most one")
		return Span{Set: true, Adaptive: true}
	}
	if p, ok := strings.CutPrefix(text, "preset "); ok {
		return o.preset(t, p)
	}
	d, err := duration.Parse(text)
	switch {
	case err != nil:
		o.r.at(t, "%v", err)
	case d < time.Millisecond || d > maxSpan:
		o.r.at(t, "must be from 1ms to 10 years; null is no limit")
	default:
		return Span{Set: true, Time: d}
	}
	return Span{}
}

// time returns a time that cannot be null.
func (o *object) time(field string) time.Duration {
	if t := o.get(field); t != nil && t.value == nil {
		o.r.at(t, "must be a time such as 30s, and is null")
	}
	return o.span(field).Time
}

// mayHave reports whether the shape of the object has a field.
func (o *object) mayHave(name string) bool {
	return hasField(o.shape, name)
}

func hasField(shape, name string) bool {
	return slices.ContainsFunc(shapes[shape], func(f Field) bool { return f.Name == name })
}

// ms reads a duration in milliseconds. null means no limit.
func (o *object) ms(field string) Span {
	t := o.get(field)
	switch {
	case t == nil:
		return Span{}
	case t.value == nil:
		return Span{Set: true}
	}
	i, ok := t.whole()
	if !ok || i < 1 || i > maxSpan.Milliseconds() {
		o.r.at(t, "must be a whole number of ms from 1 to %d; null is no limit", maxSpan.Milliseconds())
		return Span{}
	}
	return Span{Set: true, Time: time.Duration(i) * time.Millisecond}
}

// value returns a value with expressions in its texts, nil if the field is not there.
func (o *object) value(field string, variables []string) *expr.Template {
	t := o.get(field)
	if t == nil {
		return nil
	}
	return o.r.template(t, variables)
}

// expression returns an expression, nil if the field is not there.
func (o *object) expression(field string, variables []string) *expr.Expression {
	t := o.get(field)
	if t == nil {
		return nil
	}
	if !o.r.few(t, 1) {
		return nil
	}
	e, err := expr.Compile(o.r.text(t), variables)
	if err != nil {
		o.r.at(t, "%v", err)
		return nil
	}
	if len(e.Reads()) == 0 { // it is the same in each run
		if _, err := e.Condition(nil); err != nil {
			o.r.at(t, "%v", err)
		}
	}
	return e
}

// quoted is how many bytes of a definition a fault quotes.
const quoted = 80
