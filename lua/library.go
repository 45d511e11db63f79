package lua

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

//go:embed */*.lua
var files embed.FS

// Options say how the calls are composed. The zero value suits every server.
type Options struct {
	// Functions has the server keep the calls as one library of functions, which are
	// made once and not at each call. Redis has known it since 7.0. Where the library
	// cannot be loaded, a call is sent as a script.
	Functions bool
	// Replace gives files, by name, another text. Tests put a clock that they can set in
	// the place of "store/now".
	Replace map[string]string
}

// Library holds the composed calls, and what the server refused of them: give each user
// of a server a Library of its own. It may be used by many goroutines.
type Library struct {
	functions bool
	calls     map[string]*call
	prefix    string       // of the names of its functions
	whole     text         // what FUNCTION LOAD gets
	refused   atomic.Int64 // calls are sent as scripts until then, in Unix ns
}

// call is one of call/: as a function of the library, and as a script of its own.
type call struct {
	function string
	script   text
	source   string
	sha      string
	reads    bool // it has the flag no-writes
}

var loaded struct {
	sync.Mutex
	libraries map[string]*Library
}

// Load gives the calls of this package. They are composed once a process for the same
// options; each Library finds out for itself what its user may do. An error means that the files do not fit together, or that Options.Replace names one that
// is not there; it says which file is at fault.
func Load(o Options) (*Library, error) {
	key := fmt.Sprint(o.Functions, o.Replace)
	loaded.Lock()
	defer loaded.Unlock()
	l := loaded.libraries[key]
	if l == nil {
		var err error
		if l, err = LoadFS(files, o); err != nil {
			return nil, err
		}
		if loaded.libraries == nil {
			loaded.libraries = map[string]*Library{}
		}
		loaded.libraries[key] = l
	}
	return &Library{functions: l.functions, calls: l.calls, prefix: l.prefix, whole: l.whole}, nil
}

// LoadFS is Load for another folder. In errors its files are called lua/…, as those of
// this package are.
func LoadFS(fsys fs.FS, o Options) (*Library, error) {
	for _, name := range slices.Sorted(maps.Keys(o.Replace)) {
		if _, err := fs.Stat(fsys, name+".lua"); err != nil {
			return nil, fmt.Errorf("replace %s: %w", name, err)
		}
	}
	paths, err := fs.Glob(fsys, "call/*.lua")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range paths {
		names = append(names, strings.TrimSuffix(p, ".lua"))
	}
	s := &source{fsys: fsys, replace: o.Replace, read: map[string]*file{}}
	l := &Library{functions: o.Functions, calls: map[string]*call{}}
	for _, name := range names {
		c, err := compose(s, name, o)
		if err != nil {
			return nil, err
		}
		l.calls[path.Base(name)] = c
	}
	return l, l.composeWhole(s, names)
}

// compose makes the script of one call.
func compose(s *source, name string, o Options) (*call, error) {
	all, err := s.order([]string{name})
	if err != nil {
		return nil, err
	}
	f := all[len(all)-1]
	c := &call{reads: slices.Contains(f.flags, "no-writes")}
	if o.Functions { // then the server knows flags of scripts too
		shebang := "#!lua"
		if len(f.flags) > 0 {
			shebang += " flags=" + strings.Join(f.flags, ",")
		}
		c.script.add(shebang, place{f.path, 1})
	}
	c.script.add(noFiles, place{f.path, 1})
	for _, f := range all {
		c.script.put(f)
	}
	c.script.add(fmt.Sprintf("return %s(KEYS, ARGV)", inFiles(name)), place{f.path, 1})
	c.source = c.script.String()
	c.sha = digest(c.source)
	return c, nil
}

// composeWhole makes the library. It and its functions are named with a digest of the
// text and the flags, so that two versions live side by side.
func (l *Library) composeWhole(s *source, names []string) error {
	all, err := s.order(names)
	if err != nil {
		return err
	}
	var body text
	body.add(noFiles, place{"lua", 1})
	for _, f := range all {
		body.put(f)
	}
	flags := ""
	for _, name := range names {
		flags += strings.Join(append([]string{name}, s.read[name].flags...), " ") + "\n"
	}
	l.prefix = "curfew_" + digest(body.String() + flags)[:12]
	l.whole.add("#!lua name="+l.prefix, place{"lua", 1})
	l.whole.lines = append(l.whole.lines, body.lines...)
	l.whole.places = append(l.whole.places, body.places...)
	for _, name := range names {
		f, c := s.read[name], l.calls[path.Base(name)]
		c.function = l.prefix + "_" + path.Base(name)
		quoted := make([]string, len(f.flags))
		for i, flag := range f.flags {
			quoted[i] = strconv.Quote(flag)
		}
		l.whole.add(fmt.Sprintf("redis.register_function{function_name = %q, callback = %s, flags = {%s}}",
			c.function, inFiles(name), strings.Join(quoted, ", ")), place{f.path, 1})
	}
	return nil
}

func digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Names are those of all calls, sorted.
func (l *Library) Names() []string {
	return slices.Sorted(maps.Keys(l.calls))
}

// Text is what FUNCTION LOAD gets.
func (l *Library) Text() string { return l.whole.String() }

// Source is the text of a call as a script, "" if there is no such call.
func (l *Library) Source(name string) string {
	if c := l.calls[name]; c != nil {
		return c.source
	}
	return ""
}

// Reads tells whether a call writes nothing.
func (l *Library) Reads(name string) bool { return l.calls[name] != nil && l.calls[name].reads }

// Handle is the word by which a request names a call: the function's name, or the
// digest of its script. "" if there is no such call.
func (l *Library) Handle(name string) string {
	c := l.calls[name]
	switch {
	case c == nil:
		return ""
	case l.functions:
		return c.function
	}
	return c.sha
}
