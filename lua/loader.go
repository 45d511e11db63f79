package lua

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

//go:embed *.lua include/*.lua
var files embed.FS

// Options say how the scripts are composed. The zero value suits every server.
type Options struct {
	// Shebang makes "#!lua", with the script's flags, the first line of each script.
	// Redis has known it since 7.0. Without it flags are lost: a full Redis then
	// decides at a script's first write whether the script may run.
	Shebang bool
	// Replace gives includes, by name, another source. Tests put a clock that they
	// can set in the place of "now".
	Replace map[string]string
}

// Library holds the composed scripts. It does not change after Load and may be
// used by many goroutines.
type Library struct {
	scripts map[string]*script
}

type script struct {
	source, sha string
	lines       []place // lines[i] is where line i+1 of source was written
}

type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// Load composes the scripts of this package. An error means that they do not fit
// together, or that Options.Replace names an include that is not there; it says
// which file is at fault.
func Load(o Options) (*Library, error) {
	return LoadFS(files, o)
}

// LoadFS is Load for the scripts at the top of fsys, with includes in its folder
// include. In errors its files are called lua/…, as those of this package are.
func LoadFS(fsys fs.FS, o Options) (*Library, error) {
	for _, name := range slices.Sorted(maps.Keys(o.Replace)) {
		if _, err := fs.Stat(fsys, includePath(name)); err != nil {
			return nil, fmt.Errorf("replace include %s: %w", name, err)
		}
	}
	paths, err := fs.Glob(fsys, "*.lua")
	if err != nil {
		return nil, err
	}
	l := &Library{scripts: make(map[string]*script, len(paths))}
	for _, path := range paths {
		s, err := compose(fsys, path, o)
		if err != nil {
			return nil, err
		}
		l.scripts[strings.TrimSuffix(path, ".lua")] = s
	}
	return l, nil
}

// Names are those of all scripts, sorted.
func (l *Library) Names() []string {
	return slices.Sorted(maps.Keys(l.scripts))
}

// Source is the composed text of a script as it is sent, "" if there is no such
// script.
func (l *Library) Source(name string) string {
	if s := l.scripts[name]; s != nil {
		return s.source
	}
	return ""
}

// SHA is the digest by which Redis knows a script, "" if there is no such script.
func (l *Library) SHA(name string) string {
	if s := l.scripts[name]; s != nil {
		return s.sha
	}
	return ""
}

func includePath(name string) string { return "include/" + name + ".lua" }

// composer puts one script together.
type composer struct {
	fsys    fs.FS
	replace map[string]string
	open    []string        // includes whose own includes are being put in, outermost first
	done    map[string]bool // includes that are in
	text    []string
	lines   []place
}

func compose(fsys fs.FS, path string, o Options) (*script, error) {
	source, err := fs.ReadFile(fsys, path)
	if err != nil {
		return nil, err
	}
	f, err := parse("lua/"+path, string(source))
	if err != nil {
		return nil, err
	}
	c := &composer{fsys: fsys, replace: o.Replace, done: map[string]bool{}}
	if o.Shebang {
		c.add(shebang(f.flags), place{f.path, 1})
	}
	if err := c.put(f); err != nil {
		return nil, err
	}
	composed := strings.Join(c.text, "\n") + "\n"
	sum := sha1.Sum([]byte(composed))
	return &script{source: composed, sha: hex.EncodeToString(sum[:]), lines: c.lines}, nil
}

func shebang(flags []string) string {
	if len(flags) == 0 {
		return "#!lua"
	}
	return "#!lua flags=" + strings.Join(flags, ",")
}

// put appends a file's includes, then its code.
func (c *composer) put(f *file) error {
	for _, in := range f.includes {
		if err := c.include(in); err != nil {
			return err
		}
	}
	for _, l := range f.code {
		c.add(l.text, l.place)
	}
	return nil
}

func (c *composer) include(in line) error {
	name := in.text
	if c.done[name] {
		return nil
	}
	if i := slices.Index(c.open, name); i >= 0 {
		return fmt.Errorf("%s: include cycle: %s", in.place, strings.Join(append(c.open[i:], name), " -> "))
	}
	f, err := c.read(name)
	if err != nil {
		return fmt.Errorf("%s: include %s: %w", in.place, name, err)
	}
	c.open = append(c.open, name)
	if err := c.put(f); err != nil {
		return err
	}
	c.open = c.open[:len(c.open)-1]
	c.done[name] = true
	return nil
}

func (c *composer) read(name string) (*file, error) {
	path := "lua/" + includePath(name)
	source, replaced := c.replace[name]
	if replaced {
		path = "replaced " + path
	} else {
		b, err := fs.ReadFile(c.fsys, includePath(name))
		if err != nil {
			return nil, err
		}
		source = string(b)
	}
	f, err := parse(path, source)
	if err == nil && len(f.flags) > 0 {
		err = fmt.Errorf("%s: flags belong to a script, not to an include", path)
	}
	return f, err
}

func (c *composer) add(text string, from place) {
	c.text = append(c.text, text)
	c.lines = append(c.lines, from)
}

// file is a source file, taken apart into what the loader needs to know and what
// Redis runs.
type file struct {
	path     string
	flags    []string
	includes []line // text: the name
	code     []line
}

type line struct {
	place
	text string
}

var (
	flagsLine   = regexp.MustCompile(`^--\s+Flags(?:\s+(.*))?$`)
	remark      = regexp.MustCompile(`\s{2,}.*`) // what follows the flags
	longBracket = regexp.MustCompile(`\[=*\[`)
)

// flagWords are the flags that scripts may carry. Redis knows more; those would
// allow what a partition in one slot on a master must not do.
var flagWords = []string{"allow-oom", "no-writes"}

func parse(path, source string) (*file, error) {
	f := &file{path: path}
	opening := true
	for i, text := range strings.Split(source, "\n") {
		at := place{path, i + 1}
		text = strings.TrimRight(text, " \t\r")
		if longBracket.MatchString(text) {
			return nil, fmt.Errorf("%s: long brackets are not supported: use quotes, or -- on each line", at)
		}
		comment := strings.HasPrefix(strings.TrimLeft(text, " \t"), "--")
		opening = opening && comment

		var err error
		switch {
		case comment && opening && flagsLine.MatchString(text):
			err = f.addFlags(text, at)
		case strings.HasPrefix(text, "-- @"):
			err = f.addInclude(text, at)
		case !comment && strings.HasSuffix(text, `\`):
			err = fmt.Errorf("%s: a string continued on the next line is not supported: use .. and \\n", at)
		case !comment && text != "":
			f.code = append(f.code, line{at, text})
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *file) addFlags(text string, at place) error {
	words := remark.ReplaceAllString(flagsLine.FindStringSubmatch(text)[1], "")
	for _, flag := range strings.Fields(words) {
		if !slices.Contains(flagWords, flag) {
			return fmt.Errorf("%s: unknown flag %q; there are %s", at, flag, strings.Join(flagWords, ", "))
		}
		f.flags = append(f.flags, flag)
	}
	return nil
}

func (f *file) addInclude(text string, at place) error {
	words := strings.Fields(text)
	if len(words) != 3 || words[1] != "@include" {
		return fmt.Errorf("%s: %q is not of the form -- @include name", at, text)
	}
	f.includes = append(f.includes, line{at, words[2]})
	return nil
}
