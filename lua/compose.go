package lua

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// place is the source file and line of a line of composed text.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

type line struct {
	place
	text string
}

// file is a parsed source file: its declarations for the loader, and its code for Redis.
type file struct {
	name  string // "task/finish"
	path  string // in errors: "lua/task/finish.lua"
	flags []string
	uses  []use
	code  []line
}

// use is a declaration of the names that a file needs of another file.
type use struct {
	place
	file  string   // the other file, "task/finish"
	names []string // "finish", "cancel_task"
}

// base returns the last part of the file's name, "finish". It is the name that a use without names
// means.
func (f *file) base() string { return path.Base(f.name) }

// defines reports whether a name is defined at the top of a file.
func (f *file) defines(name string) bool {
	return slices.ContainsFunc(f.code, func(l line) bool {
		return strings.HasPrefix(l.text, "local function "+name+"(") || strings.HasPrefix(l.text, "local "+name+" = ")
	})
}

// noFiles begins a composed text. The table files holds the exported names of each file.
const noFiles = "local files = {}"

// inFiles returns the expression for a name of a file: files["task/finish"].cancel_task.
func inFiles(file, name string) string { return fmt.Sprintf("files[%q].%s", file, name) }

// source reads and parses the files of one folder, and caches them.
type source struct {
	fsys    fs.FS
	replace map[string]string
	read    map[string]*file
}

// file returns a file by its name, parsed.
func (s *source) file(name string) (*file, error) {
	if f := s.read[name]; f != nil {
		return f, nil
	}
	path := "lua/" + name + ".lua"
	text, replaced := s.replace[name]
	if replaced {
		path = "replaced " + path
	} else {
		b, err := fs.ReadFile(s.fsys, name+".lua")
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	f, err := parse(name, path, text)
	if err != nil {
		return nil, err
	}
	s.read[name] = f
	return f, nil
}

// order returns the named files and the files that they use, directly or indirectly. Each file
// follows the files that it uses, because the composed text reads their names when it is loaded.
func (s *source) order(names []string) ([]*file, error) {
	var sorted []*file
	done := map[string]bool{}
	var open []string // files whose own uses are being followed, outermost first
	var visit func(u use) error
	visit = func(u use) error {
		if !done[u.file] {
			if i := slices.Index(open, u.file); i >= 0 {
				return u.fail(fmt.Errorf("cycle: %s", strings.Join(append(open[i:], u.file), " -> ")))
			}
			f, err := s.file(u.file)
			if err != nil {
				return u.fail(err)
			}
			open = append(open, u.file)
			for _, inner := range f.uses {
				if err := visit(inner); err != nil {
					return err
				}
			}
			open = open[:len(open)-1]
			done[u.file] = true
			sorted = append(sorted, f)
		}
		f := s.read[u.file]
		for _, name := range u.names {
			if !f.defines(name) {
				return u.fail(fmt.Errorf("%s does not define %s", f.path, name))
			}
		}
		return nil
	}
	for _, name := range names {
		if err := visit(use{file: name}); err != nil {
			return nil, err
		}
	}
	return sorted, nil
}

// fail adds the place of the use to an error. A file that the loader reads by its name has no such
// place.
func (u use) fail(err error) error {
	if u.place.file == "" {
		return err
	}
	return fmt.Errorf("%s: use %s: %w", u.place, u.file, err)
}

// exports returns, by file, the names that other files use, sorted. Clients use a call by its own
// name.
func exports(list []*file) map[string][]string {
	names := map[string][]string{}
	for _, f := range list {
		if isEntry(f.name) {
			names[f.name] = append(names[f.name], f.base())
		}
		for _, u := range f.uses {
			names[u.file] = append(names[u.file], u.names...)
		}
	}
	for file, used := range names {
		slices.Sort(used)
		names[file] = slices.Compact(used)
	}
	return names
}

// text is composed text with the source of each line.
type text struct {
	lines  []string
	places []place
}

func (t *text) add(s string, from place) {
	t.lines = append(t.lines, s)
	t.places = append(t.places, from)
}

func (t *text) String() string { return strings.Join(t.lines, "\n") + "\n" }

func (t *text) append(other text) {
	t.lines = append(t.lines, other.lines...)
	t.places = append(t.places, other.places...)
}

// register makes the file's own function a function of the library, under this name.
func (t *text) register(f *file, name string) {
	quoted := make([]string, len(f.flags))
	for i, flag := range f.flags {
		quoted[i] = strconv.Quote(flag)
	}
	t.add(fmt.Sprintf("redis.register_function{function_name = %q, callback = %s, flags = {%s}}",
		name, inFiles(f.name, f.base()), strings.Join(quoted, ", ")), place{f.path, 1})
}

// put appends files. Each becomes a function whose parameters are the names that it uses, and which
// returns the names that other files use. So a file sees no other names of other files.
func (t *text) put(list []*file) {
	exported := exports(list)
	for _, f := range list {
		var parameters, arguments, returned []string
		for _, u := range f.uses {
			for _, name := range u.names {
				parameters, arguments = append(parameters, name), append(arguments, inFiles(u.file, name))
			}
		}
		for _, name := range exported[f.name] {
			returned = append(returned, name+" = "+name)
		}
		t.add(fmt.Sprintf("files[%q] = (function(%s)", f.name, strings.Join(parameters, ", ")), place{f.path, 1})
		for _, l := range f.code {
			t.add(l.text, l.place)
		}
		t.add(fmt.Sprintf("return {%s} end)(%s)", strings.Join(returned, ", "), strings.Join(arguments, ", ")), place{f.path, 1})
	}
}

var (
	flagsLine   = regexp.MustCompile(`^--\s+Flags(?:\s+(.*))?$`)
	remark      = regexp.MustCompile(`\s{2,}.*`) // text after the flags
	longBracket = regexp.MustCompile(`\[=*\[`)
)

// flagWords are the flags that a call can have. Redis has others, which a call must not have,
// because they allow stale replicas and keys of several slots.
var flagWords = []string{"allow-oom", "no-writes"}

func parse(name, from, source string) (*file, error) {
	f := &file{name: name, path: from}
	opening := true
	for i, text := range strings.Split(source, "\n") {
		at := place{from, i + 1}
		text = strings.TrimRight(text, " \t\r")
		if strings.IndexByte(text, '[') >= 0 && longBracket.MatchString(text) {
			return nil, fmt.Errorf("%s: long brackets are not supported: use quotes, or -- on each line", at)
		}
		comment := strings.HasPrefix(strings.TrimLeft(text, " \t"), "--")
		opening = opening && comment

		var err error
		switch {
		case comment && opening && flagsLine.MatchString(text):
			err = f.addFlags(text, at)
		case strings.HasPrefix(text, "-- @"):
			err = f.addUse(text, at)
		case !comment && strings.HasSuffix(text, `\`):
			err = fmt.Errorf("%s: a string continued on the next line is not supported: use .. and \\n", at)
		case !comment && text != "":
			f.code = append(f.code, line{at, text})
		}
		if err != nil {
			return nil, err
		}
	}
	if isEntry(name) && !f.defines(f.base()) {
		return nil, fmt.Errorf("%s: it must define %s, the name of the call", from, f.base())
	}
	return f, nil
}

func (f *file) addFlags(text string, at place) error {
	if !isEntry(f.name) {
		return fmt.Errorf("%s: only files of call/ and facade/ can have flags", at)
	}
	words := remark.ReplaceAllString(flagsLine.FindStringSubmatch(text)[1], "")
	for _, flag := range strings.Fields(words) {
		if !slices.Contains(flagWords, flag) {
			return fmt.Errorf("%s: unknown flag %q: use %s", at, flag, strings.Join(flagWords, ", "))
		}
		f.flags = append(f.flags, flag)
	}
	return nil
}

// isEntry reports whether clients call the function of a file.
func isEntry(name string) bool { return path.Dir(name) == "call" || path.Dir(name) == "facade" }

// useLine matches a declaration of used names. A use without names means the name of the file
// itself.
var useLine = regexp.MustCompile(`^-- @use ([a-z0-9_]+/[a-z0-9_]+)(?:: ([a-z0-9_]+(?:, [a-z0-9_]+)*))?$`)

func (f *file) addUse(text string, at place) error {
	m := useLine.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%s: %q is not of the form -- @use folder/file, or -- @use folder/file: name, name", at, text)
	}
	if isEntry(m[1]) && !(path.Dir(m[1]) == "call" && path.Dir(f.name) == "facade") {
		return fmt.Errorf("%s: %s is a call: only clients can use it", at, m[1])
	}
	names := []string{path.Base(m[1])}
	if m[2] != "" {
		names = strings.Split(m[2], ", ")
	}
	f.uses = append(f.uses, use{at, m[1], names})
	return nil
}
