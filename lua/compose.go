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
	uses  []line // text: the name of a file
	code  []line
}

// base returns the name that the file defines: "finish".
func (f *file) base() string { return path.Base(f.name) }

// noFiles begins a composed text. A table holds what the files define: Lua allows no
// more than 200 local variables, and there are more files.
const noFiles = "local files = {}"

// inFiles returns the expression for what a file defines: files["task/finish"].
func inFiles(name string) string { return fmt.Sprintf("files[%q]", name) }

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
	fail := func(use line, err error) error {
		if use.file == "" { // it is one of names
			return err
		}
		return fmt.Errorf("%s: use %s: %w", use.place, use.text, err)
	}
	var visit func(use line) error
	visit = func(use line) error {
		name := use.text
		if done[name] {
			return nil
		}
		if i := slices.Index(open, name); i >= 0 {
			return fail(use, fmt.Errorf("cycle: %s", strings.Join(append(open[i:], name), " -> ")))
		}
		f, err := s.file(name)
		if err != nil {
			return fail(use, err)
		}
		open = append(open, name)
		for _, use := range f.uses {
			if err := visit(use); err != nil {
				return err
			}
		}
		open = open[:len(open)-1]
		done[name] = true
		all = append(all, f)
		return nil
	}
	for _, name := range names {
		if err := visit(line{text: name}); err != nil {
			return nil, err
		}
	}
	return all, nil
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
		name, inFiles(f.name), strings.Join(quoted, ", ")), place{f.path, 1})
}

// put appends a file as a function. Its parameters are what the file uses, and it returns
// what the file defines. So a file sees no names of other files.
func (t *text) put(f *file) {
	given, used := make([]string, len(f.uses)), make([]string, len(f.uses))
	for i, use := range f.uses {
		given[i], used[i] = path.Base(use.text), inFiles(use.text)
	}
	t.add(fmt.Sprintf("%s = (function(%s)", inFiles(f.name), strings.Join(given, ", ")), place{f.path, 1})
	for _, l := range f.code {
		t.add(l.text, l.place)
	}
	t.add(fmt.Sprintf("return %s end)(%s)", f.base(), strings.Join(used, ", ")), place{f.path, 1})
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
	defines := func(l line) bool {
		return strings.HasPrefix(l.text, "local function "+f.base()+"(") || strings.HasPrefix(l.text, "local "+f.base()+" = ")
	}
	if !slices.ContainsFunc(f.code, defines) {
		return nil, fmt.Errorf("%s: it must define %s, the name of the file", from, f.base())
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

func (f *file) addUse(text string, at place) error {
	words := strings.Fields(text)
	if len(words) != 3 || words[1] != "@use" || strings.Count(words[2], "/") != 1 {
		return fmt.Errorf("%s: %q is not of the form -- @use folder/name", at, text)
	}
	if isEntry(words[2]) && !(path.Dir(words[2]) == "call" && path.Dir(f.name) == "facade") {
		return fmt.Errorf("%s: %s is a call: only clients can use it", at, words[2])
	}
	f.uses = append(f.uses, line{at, words[2]})
	return nil
}
