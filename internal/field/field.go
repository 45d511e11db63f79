// Package field has the table of the fields of a task: their names, types and bounds, and who may set them. What reads or
// shows fields is made from it: tasks in JSON, the HTTP API and its description, flags, and the vocabulary. The Lua has a table of
// its own (lua/store/task_fields.lua), which a test compares with this one.
//
// A new field needs a row here and one there, the field of [queue.Task] with its line in the call, and its use.
//
// [queue.Task]: https://pkg.go.dev/github.com/curfew-dev/curfew/queue#Task
package field

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Type is the type of the values of a field.
type Type int

// The types. The type in Go is in parentheses.
const (
	Text    Type = iota // a text (string)
	Word                // one of Words (a type of strings; or bool, which is true for the last word)
	Number              // a whole number (int)
	Percent             // a whole number (float64, a fraction)
	Span                // ms, or none (time.Duration)
	Instant             // ms since 1970 (time.Time)
	Hook                // a kind, or a kind, a space and a queue (a struct of the two)
	Object              // read by its own code
)

// Setter says who may set a field.
type Setter int

// The setters.
const (
	Producer Setter = iota // a producer, for its task
	Kind                   // a producer; and a kind can have a default, which applies if the producer leaves the field out
	Client                 // only the clients of Curfew itself
)

// Field is a field of a task.
type Field struct {
	Name        string // in calls, records and the defaults of kinds
	Go          string // in queue.Task; if By is Kind, also in queue.Defaults
	Type        Type
	By          Setter
	Least, Most int64    // of a Number or a Percent
	Words       []string // of a Word
	ZeroIsNone  bool     // of a Span: 0 is a value, and means none. Of the others, 0 is no value
	Flag        string   // in commands, if it is not the name with dashes
	Help        string   // what the field is, for the help of commands; "" if it has no flag
	JSON        string   // in tasks that are written by people and programs, if it is not Name. A Span can also be given with a unit, under the name without _ms
}

// None is the time.Duration of a Span that is none: it has no value, and no default of the kind applies.
const None time.Duration = math.MinInt64

// ByName returns the field with a name: in calls, or in JSON with or without _ms.
func ByName(name string) (f *Field, known bool) {
	f, known = byName[name]
	return f, known
}

var byName = func() map[string]*Field {
	all := map[string]*Field{}
	for i := range All {
		f := &All[i]
		all[f.Name], all[f.InJSON()], all[f.Plain()] = f, f, f
	}
	return all
}()

// InJSON returns the name of the field in JSON: "backoff_delay_ms".
func (f *Field) InJSON() string {
	if f.JSON != "" {
		return f.JSON
	}
	return f.Name
}

// Plain returns the name in JSON without the unit: "backoff_delay".
func (f *Field) Plain() string { return strings.TrimSuffix(f.InJSON(), "_ms") }

// FlagName returns the name of the flag that sets the field.
func (f *Field) FlagName() string {
	if f.Flag != "" {
		return f.Flag
	}
	return strings.ReplaceAll(f.Plain(), "_", "-")
}

// In returns the field of a struct: of a pointer to a queue.Task or queue.Defaults. It uses reflection, so it is not for the calls of
// producers and workers in Go.
func (f *Field) In(of any) reflect.Value {
	v := reflect.ValueOf(of).Elem()
	for name := range strings.SplitSeq(f.Go, ".") {
		v = v.FieldByName(name)
	}
	return v
}

// Set sets the field of a struct, as In takes it, to a value that is stored. Absent or damaged numbers count as 0.
func (f *Field) Set(of any, stored string) {
	v := f.In(of)
	n, _ := strconv.ParseInt(stored, 10, 64)
	switch f.Type {
	case Span:
		if v.SetInt(n * int64(time.Millisecond)); stored == "none" || stored == "0" && f.ZeroIsNone {
			v.SetInt(int64(None))
		}
	case Instant:
		v.Set(reflect.ValueOf(time.UnixMilli(n)))
	case Number:
		v.SetInt(n)
	case Percent:
		v.SetFloat(float64(n) / 100)
	case Hook:
		kind, queue, both := strings.Cut(stored, " ")
		if both && queue == "" {
			kind = stored // which no kind can be, so that it is refused
		}
		v.Field(0).SetString(kind)
		v.Field(1).SetString(queue)
	default:
		if v.Kind() == reflect.Bool {
			v.SetBool(stored == f.Words[len(f.Words)-1])
		} else {
			v.SetString(stored)
		}
	}
}

// Defaults sets the fields of a queue.Defaults from stored values: of a kind, or of the record of a task.
func Defaults(into any, stored map[string]string) {
	for i := range All {
		if f := &All[i]; f.By == Kind {
			f.Set(into, stored[f.Name])
		}
	}
}
