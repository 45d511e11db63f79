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

// place is the file and line in which a line of composed text was written.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

type line struct {
	place
	text string
}

// file is a parsed source file: what the loader needs to know, and the code that
// Redis runs.
type file struct {
	name  string // "task/finish"
	path  string // in errors: "lua/task/finish.lua"
	flags []string
	uses  []use
	code  []line
}

// use is a line of a file that names another file, and what the first needs of it.
type use struct {
	place
	file  string   // "task/finish"
	names []string // "finish", "cancel_task"
}

// base returns the name of what a file without other names defines: "finish".
func (f *file) base() string { return path.Base(f.name) }

// defines reports whether a name is defined at the top of a file.
func (f *file) defines(name string) bool {
	return slices.ContainsFunc(f.code, func(l line) bool {
		return strings.HasPrefix(l.text, "local function "+name+"(") || strings.HasPrefix(l.text, "local "+name+" = ")
	})
}

// noFiles begins a composed text. A table holds what the files define, by file and name.
const noFiles = "local files = {}"

// inFiles returns the expression for what a file defines: files["task/finish"].cancel_task.
func inFiles(file, name string) string { return fmt.Sprintf("files[%q].%s", file, name) }

// source reads and parses the files of one folder, each once.
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
	from := "lua/" + name + ".lua"
	text, replaced := s.replace[name]
	if replaced {
		from = "replaced " + from
	} else {
		b, err := fs.ReadFile(s.fsys, name+".lua")
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	f, err := parse(name, from, text)
	if err != nil {
		return nil, err
	}
	s.read[name] = f
	return f, nil
}

// order returns the named files and all files that they use, directly or not. Each file
// comes after those that it uses.
func (s *source) order(names []string) ([]*file, error) {
	var all []*file
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
			all = append(all, f)
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
	return all, nil
}

// fail returns an error of a use. A file that is loaded by its name has no place where it is used.
func (u use) fail(err error) error {
	if u.place.file == "" {
		return err
	}
	return fmt.Errorf("%s: use %s: %w", u.place, u.file, err)
}

// needed returns, by file, the names that other files need, sorted. A call is needed by clients.
func needed(all []*file) map[string][]string {
	names := map[string][]string{}
	for _, f := range all {
		if isEntry(f.name) {
			names[f.name] = append(names[f.name], f.base())
		}
		for _, u := range f.uses {
			names[u.file] = append(names[u.file], u.names...)
		}
	}
	for file, list := range names {
		slices.Sort(list)
		names[file] = slices.Compact(list)
	}
	return names
}

// text is composed text, with the place of each of its lines.
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

// register makes what a file defines a function of the library, by a name.
func (t *text) register(f *file, name string) {
	quoted := make([]string, len(f.flags))
	for i, flag := range f.flags {
		quoted[i] = strconv.Quote(flag)
	}
	t.add(fmt.Sprintf("redis.register_function{function_name = %q, callback = %s, flags = {%s}}",
		name, inFiles(f.name, f.base()), strings.Join(quoted, ", ")), place{f.path, 1})
}

// put appends files, each as a function. Its parameters are what the file uses, and it returns
// what others use of it. So a file sees no other names of other files.
func (t *text) put(all []*file) {
	names := needed(all)
	for _, f := range all {
		var given, used, returned []string
		for _, u := range f.uses {
			for _, name := range u.names {
				given, used = append(given, name), append(used, inFiles(u.file, name))
			}
		}
		for _, name := range names[f.name] {
			returned = append(returned, name+" = "+name)
		}
		t.add(fmt.Sprintf("files[%q] = (function(%s)", f.name, strings.Join(given, ", ")), place{f.path, 1})
		for _, l := range f.code {
			t.add(l.text, l.place)
		}
		t.add(fmt.Sprintf("return {%s} end)(%s)", strings.Join(returned, ", "), strings.Join(used, ", ")), place{f.path, 1})
	}
}

var (
	flagsLine   = regexp.MustCompile(`^--\s+Flags(?:\s+(.*))?$`)
	remark      = regexp.MustCompile(`\s{2,}.*`) // what follows the flags
	longBracket = regexp.MustCompile(`\[=*\[`)
)

// flagWords are the flags that a call can have. Redis has others, which a call must not
// have: they allow stale replicas and keys of several slots.
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

// aUse is a line with the names that a file needs of another one. Without names it needs the one that the other has the name of.
var aUse = regexp.MustCompile(`^-- @use ([a-z0-9_]+/[a-z0-9_]+)(?:: ([a-z0-9_]+(?:, [a-z0-9_]+)*))?$`)

func (f *file) addUse(text string, at place) error {
	parts := aUse.FindStringSubmatch(text)
	if parts == nil {
		return fmt.Errorf("%s: %q is not of the form -- @use folder/file, or -- @use folder/file: name, name", at, text)
	}
	if isEntry(parts[1]) && !(path.Dir(parts[1]) == "call" && path.Dir(f.name) == "facade") {
		return fmt.Errorf("%s: %s is a call: only clients can use it", at, parts[1])
	}
	names := []string{path.Base(parts[1])}
	if parts[2] != "" {
		names = strings.Split(parts[2], ", ")
	}
	f.uses = append(f.uses, use{at, parts[1], names})
	return nil
}
