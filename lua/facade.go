package lua

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// FacadeName is the name of the library of functions that programs in other languages call.
// It is the same in all versions.
const FacadeName = "curfew"

// Facade is the library of functions with names and values, which serves programs in any
// language: curfew_enqueue and others. Its functions are made of the same files as the calls.
type Facade struct {
	text    string
	places  []place
	build   int
	records []string
	scripts map[string]string
	reads   map[string]bool
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
	names, err := filesIn(files, "facade")
	if err != nil {
		return nil, err
	}
	s := &source{fsys: files, replace: replace, read: map[string]*file{}}
	body, _, err := composeAll(s, names)
	if err != nil {
		return nil, err
	}
	var whole text
	whole.add("#!lua name="+FacadeName, place{"lua", 1})
	whole.append(body)
	f := &Facade{scripts: map[string]string{}, reads: map[string]bool{}}
	for _, name := range names {
		whole.register(s.read[name], path.Base(name))
		c, err := compose(s, name, Options{Functions: true})
		if err != nil {
			return nil, err
		}
		f.scripts[path.Base(name)], f.reads[path.Base(name)] = c.source, c.reads
	}
	f.text, f.places = whole.String(), whole.places
	f.build, f.records, err = versions(f.text)
	return f, err
}

// Text is what FUNCTION LOAD gets.
func (f *Facade) Text() string { return f.text }

// Names are those of the functions, sorted.
func (f *Facade) Names() []string {
	names := make([]string, 0, len(f.scripts))
	for name := range f.scripts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Script is a function as a script for EVAL, "" if there is no such function.
func (f *Facade) Script(name string) string { return f.scripts[name] }

// Reads tells whether a function writes nothing, so that FCALL_RO runs it.
func (f *Facade) Reads(name string) bool { return f.reads[name] }

// facadeLine is the line of a façade that says what it is (named/facade.lua).
var facadeLine = regexp.MustCompile(`(?m)^local facade = \{build = (\d+), records = "([\d ]*)"\}$`)

// versions returns the build number of a façade, and the versions of records that it can work with.
func versions(text string) (build int, records []string, err error) {
	about := facadeLine.FindStringSubmatch(text)
	if about == nil {
		return 0, nil, errors.New("the library " + FacadeName + " does not say which build it is")
	}
	build, err = strconv.Atoi(about[1])
	return build, strings.Fields(about[2]), err
}

// Build is a number that is greater in newer versions.
func (f *Facade) Build() int { return f.build }

// Supersedes tells whether one façade may replace another, whose texts are given: it is newer,
// and works with every version of records that the other works with.
func Supersedes(text, other string) bool {
	build, records, err := versions(text)
	otherBuild, otherRecords, otherErr := versions(other)
	if err != nil || otherErr != nil || build <= otherBuild {
		return false
	}
	for _, version := range otherRecords {
		if !slices.Contains(records, version) {
			return false
		}
	}
	return true
}
