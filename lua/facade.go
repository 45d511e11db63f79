package lua

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"sync"
)

// FacadeName is the name of the façade's library. It is the same in all versions.
const FacadeName = "curfew"

// Facade is a library of functions for programs in any language, with names and values as arguments:
// curfew_enqueue and others. They use the same files as the calls.
//
// The library also contains the calls, under the names that Library gives them, so that a server
// needs only one library. Two libraries with the same files would make small calls slower, because
// the garbage collector of Redis visits all of them again and again.
type Facade struct {
	whole text
	build int
	calls map[string]*call
}

var facadeOnce = sync.OnceValues(func() (*Facade, error) { return composeFacade(nil) })

// LoadFacade composes the façade. replace works like Options.Replace.
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

// withFacade returns the text of the library with the façade. It begins with the files of the calls,
// on the same lines as in the library without the façade, so that errors name the same places.
func (l *Library) withFacade(s *source, facades []string) (text, error) {
	calls, err := filesIn(files, "call")
	if err != nil {
		return text{}, err
	}
	body, _, err := composeAll(s, append(calls, facades...))
	if err != nil {
		return text{}, err
	}
	var library text
	library.add("#!lua name="+FacadeName, place{"lua", 1})
	library.append(body)
	for _, name := range calls {
		library.register(s.read[name], l.calls[path.Base(name)].function)
	}
	for _, name := range facades {
		library.register(s.read[name], path.Base(name))
	}
	return library, nil
}

// Text returns the text for FUNCTION LOAD.
func (f *Facade) Text() string { return f.whole.String() }

// Place returns the source file and line of a line of Text, such as lua/task/finish.lua:12. The
// first line is 1. Place panics if there is no such line.
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

// callLine matches the registration of a call under its name in the library of the calls.
var callLine = regexp.MustCompile(`\nredis\.register_function\{function_name = "(curfew_[0-9a-f]{12})_`)

// CallsIn returns the name of the library whose calls the text of a façade contains, or "". A server
// cannot have both, because their functions have the same names.
func CallsIn(text string) string {
	if m := callLine.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// Build returns a number that is greater in newer versions.
func (f *Facade) Build() int { return f.build }
