package lua

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

//go:embed */*.lua
var embedded embed.FS

// folder is empty except in the test binaries of internal/tool/planted. Their linker sets it, and
// they read the files from it.
var folder string

var files = filesOf(folder)

func filesOf(folder string) fs.FS {
	if folder != "" {
		return os.DirFS(folder)
	}
	return embedded
}

// Options select how the calls are composed. The zero value works on every server.
type Options struct {
	// Functions makes the server keep the calls as one library of functions, which it compiles once
	// and not for each call. Redis has functions since 7.0. If the server refuses to load the
	// library, calls are sent as scripts.
	Functions bool
	// Replace maps names of files to other texts. For example, tests replace "store/now" by a clock
	// that they set.
	Replace map[string]string
}

// Library holds the composed calls, and records whether a server refused functions. Use one
// Library for each server and user. A Library is safe for concurrent use.
type Library struct {
	functions bool
	calls     map[string]*call
	prefix    string       // of the names of the functions
	whole     text         // the text for FUNCTION LOAD
	versions  Versions     // of records
	refused   atomic.Int64 // until this instant, in Unix ns, calls are sent as scripts
}

// call is a file of call/ or facade/, both as a function of the library and as a script.
type call struct {
	function string
	script   func() *script
	reads    bool // whether it has the flag no-writes
}

// script is the text of a call with the files that it uses.
type script struct {
	text
	source string
	sha    string
}

var loaded struct {
	sync.Mutex
	libraries map[string]*Library
}

// Load returns the calls of this package. It composes them once per process and options. Libraries
// share the text, but not their records about servers. Load fails if the files do not fit together,
// or if Options.Replace names a file that does not exist; the error names the file.
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
	return &Library{functions: l.functions, calls: l.calls, prefix: l.prefix, whole: l.whole, versions: l.versions}, nil
}

// LoadFS is Load for the files of another folder, which it composes each time. Errors name these
// files lua/…, like the files of this package.
func LoadFS(fsys fs.FS, o Options) (*Library, error) {
	for _, name := range slices.Sorted(maps.Keys(o.Replace)) {
		if _, err := fs.Stat(fsys, name+".lua"); err != nil {
			return nil, fmt.Errorf("replace %s: %w", name, err)
		}
	}
	names, err := filesIn(fsys, "call")
	if err != nil {
		return nil, err
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

// filesIn returns the names of the files of a folder.
func filesIn(fsys fs.FS, folder string) ([]string, error) {
	paths, err := fs.Glob(fsys, folder+"/*.lua")
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(p, ".lua")
	}
	return paths, err
}

// compose returns one call. Its script is composed when it is first needed, because a server with
// functions needs none.
func compose(s *source, name string, o Options) (*call, error) {
	sorted, err := s.order([]string{name})
	if err != nil {
		return nil, err
	}
	f := sorted[len(sorted)-1]
	return &call{reads: slices.Contains(f.flags, "no-writes"), script: sync.OnceValue(func() *script { return composeScript(f, sorted, o) })}, nil
}

// composeScript returns a script with a file and the files that it uses.
func composeScript(f *file, sorted []*file, o Options) *script {
	c := &script{}
	if o.Functions { // a server with functions also accepts flags of scripts
		shebang := "#!lua"
		if len(f.flags) > 0 {
			shebang += " flags=" + strings.Join(f.flags, ",")
		}
		c.add(shebang, place{f.path, 1})
	}
	c.add(noFiles, place{f.path, 1})
	c.put(sorted)
	c.add(fmt.Sprintf("return %s(KEYS, ARGV)", inFiles(f.name, f.base())), place{f.path, 1})
	c.source = c.String()
	c.sha = digest(c.source)
	return c
}

// composeWhole composes the library. The names of the library and its functions contain a
// digest of the text and the flags, so that a server can hold several versions.
func (l *Library) composeWhole(s *source, names []string) error {
	body, flags, err := composeAll(s, names)
	if err != nil {
		return err
	}
	l.versions, _ = versionsIn(body.String())
	l.prefix = "curfew_" + digest(body.String() + flags)[:12]
	l.whole.add("#!lua name="+l.prefix, place{"lua", 1})
	l.whole.append(body)
	for _, name := range names {
		c := l.calls[path.Base(name)]
		c.function = l.prefix + "_" + path.Base(name)
		l.whole.register(s.read[name], c.function)
	}
	return nil
}

// composeAll returns one text with the named files and the files that they use. flags lists the
// names with their flags.
func composeAll(s *source, names []string) (body text, flags string, err error) {
	sorted, err := s.order(names)
	if err != nil {
		return text{}, "", err
	}
	body.add(noFiles, place{"lua", 1})
	body.put(sorted)
	for _, name := range names {
		flags += strings.Join(append([]string{name}, s.read[name].flags...), " ") + "\n"
	}
	return body, flags, nil
}

func digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Names returns the names of all calls, sorted.
func (l *Library) Names() []string {
	return slices.Sorted(maps.Keys(l.calls))
}

// Text returns the text for FUNCTION LOAD.
func (l *Library) Text() string { return l.whole.String() }

// Source returns the text of a call as a script, "" if there is no such call.
func (l *Library) Source(name string) string {
	if c := l.calls[name]; c != nil {
		return c.script().source
	}
	return ""
}

// Functions reports whether calls are functions of a library. Otherwise they are scripts.
func (l *Library) Functions() bool { return l.functions }

// Reads reports whether a call has the flag no-writes: it writes nothing. It returns false if
// there is no such call.
func (l *Library) Reads(name string) bool { return l.calls[name] != nil && l.calls[name].reads }

// Handle returns the argument by which FCALL or EVALSHA names a call: the name of its
// function, or the digest of its script. It returns "" if there is no such call.
func (l *Library) Handle(name string) string {
	c := l.calls[name]
	switch {
	case c == nil:
		return ""
	case l.functions:
		return c.function
	}
	return c.script().sha
}
