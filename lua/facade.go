package lua

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"sync"
)

// FacadeName is the name of the library that has the façade. It is the same in all versions.
const FacadeName = "curfew"

// Facade is the functions that programs in any language call, with names and values:
// curfew_enqueue and others. They use the same files as the calls.
//
// Its library has the calls too, by the names that Library gives them. So a server needs one
// library, and not two with the same files: the collector of Redis reads all of them again and
// again, which makes small calls slower.
type Facade struct {
	whole text
	build int
	calls map[string]*call
}

var facadeOnce = sync.OnceValues(func() (*Facade, error) { return composeFacade(nil) })

// LoadFacade composes the façade. replace gives files another text, as Options.Replace does.
func LoadFacade(replace map[string]string) (*Facade, error) {
	if replace == nil {
		return facadeOnce()
	}
	return composeFacade(replace)
}

func composeFacade(replace map[string]string) (*Facade, error) {
	o := Options{Functions: true, Replace: replace}
	l, err := Load(o)
	if err != nil {
		return nil, err
	}
	names, err := filesIn(files, "facade")
	if err != nil {
		return nil, err
	}
	s := &source{fsys: files, replace: replace, read: map[string]*file{}}
	f := &Facade{calls: map[string]*call{}}
	for _, name := range names {
		if f.calls[path.Base(name)], err = compose(s, name, o); err != nil {
			return nil, err
		}
	}
	if f.whole, err = l.withFacade(s, names); err != nil {
		return nil, err
	}
	f.build, _, err = about(f.Text())
	return f, err
}

// withFacade returns the text of the library with the façade. It begins with the files of the
// calls, on the same lines as in the library without the façade, so errors name the same places.
func (l *Library) withFacade(s *source, facades []string) (text, error) {
	calls, err := filesIn(files, "call")
	if err != nil {
		return text{}, err
	}
	body, _, err := composeAll(s, append(calls, facades...))
	if err != nil {
		return text{}, err
	}
	var whole text
	whole.add("#!lua name="+FacadeName, place{"lua", 1})
	whole.append(body)
	for _, name := range calls {
		whole.register(s.read[name], l.calls[path.Base(name)].function)
	}
	for _, name := range facades {
		whole.register(s.read[name], path.Base(name))
	}
	return whole, nil
}

// Text returns the text for FUNCTION LOAD.
func (f *Facade) Text() string { return f.whole.String() }

// Place returns the file and line from which a line of Text comes, such as lua/task/finish.lua:12. The first line is 1. Place
// panics if there is no such line.
func (f *Facade) Place(line int) string { return f.whole.places[line-1].String() }

// Names returns the names of the functions, sorted.
func (f *Facade) Names() []string { return slices.Sorted(maps.Keys(f.calls)) }

// Script returns a function as a script for EVAL, or "".
func (f *Facade) Script(name string) string {
	if c := f.calls[name]; c != nil {
		return c.script().source
	}
	return ""
}

// Reads reports whether a function writes nothing, so that FCALL_RO runs it.
func (f *Facade) Reads(name string) bool { return f.calls[name] != nil && f.calls[name].reads }

// aCall is a line that registers a call, by the name of the library that has only the calls.
var aCall = regexp.MustCompile(`\nredis\.register_function\{function_name = "(curfew_[0-9a-f]{12})_`)

// CallsIn returns the name of the library that has the same calls as the text of a façade, or "".
// A server cannot have both, since their functions have the same names.
func CallsIn(text string) string {
	if found := aCall.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// Build returns a number that is greater in newer versions.
func (f *Facade) Build() int { return f.build }
