package lua

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// place is where a line was written.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

type line struct {
	place
	text string
}

// file is a source file, taken apart into what the loader needs to know and what
// Redis runs.
type file struct {
	name  string // "task/finish"
	path  string // for errors: "lua/task/finish.lua"
	flags []string
	uses  []line // text: the name of a file
	code  []line
}

// base is the name that the file defines: "finish".
func (f *file) base() string { return path.Base(f.name) }

// noFiles begins a composed text. What a file defines is kept in a table: Lua allows no
// more than 200 local variables, and there are more files.
const noFiles = "local files = {}"

// inFiles is what a file defines, in composed text: files["task/finish"].
func inFiles(name string) string { return fmt.Sprintf("files[%q]", name) }

// source reads the files of one folder, each once.
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

// order lists the files that some files reach, themselves included, each after those
// that it uses.
func (s *source) order(names []string) ([]*file, error) {
	var all []*file
	done := map[string]bool{}
	var open []string // files whose own uses are being followed, outermost first
	var visit func(name string, from string) error
	visit = func(name, from string) error {
		if done[name] {
			return nil
		}
		if i := slices.Index(open, name); i >= 0 {
			return fmt.Errorf("%scycle: %s", from, strings.Join(append(open[i:], name), " -> "))
		}
		f, err := s.file(name)
		if err != nil {
			return fmt.Errorf("%s%w", from, err)
		}
		open = append(open, name)
		for _, use := range f.uses {
			if err := visit(use.text, fmt.Sprintf("%s: use %s: ", use.place, use.text)); err != nil {
				return err
			}
		}
		open = open[:len(open)-1]
		done[name] = true
		all = append(all, f)
		return nil
	}
	for _, name := range names {
		if err := visit(name, ""); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// text is composed text, and where each of its lines was written.
type text struct {
	lines  []string
	places []place
}

func (t *text) add(s string, from place) {
	t.lines = append(t.lines, s)
	t.places = append(t.places, from)
}

func (t *text) String() string { return strings.Join(t.lines, "\n") + "\n" }

// put appends a file as a function that gets what the file uses, and returns what it
// defines. So a file sees no other name, whatever stands around it.
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

// flagWords are the flags that calls may carry. Redis knows more; those would allow what
// a partition in one slot on a master must not do.
var flagWords = []string{"allow-oom", "no-writes"}

func parse(name, from, source string) (*file, error) {
	f := &file{name: name, path: from}
	opening := true
	for i, text := range strings.Split(source, "\n") {
		at := place{from, i + 1}
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
	defines := regexp.MustCompile(`^local (?:function ` + f.base() + `\(|` + f.base() + ` = )`)
	if !slices.ContainsFunc(f.code, func(l line) bool { return defines.MatchString(l.text) }) {
		return nil, fmt.Errorf("%s: it must define %s, as it is called", from, f.base())
	}
	return f, nil
}

func (f *file) addFlags(text string, at place) error {
	if path.Dir(f.name) != "call" {
		return fmt.Errorf("%s: flags belong to a file of call/", at)
	}
	words := remark.ReplaceAllString(flagsLine.FindStringSubmatch(text)[1], "")
	for _, flag := range strings.Fields(words) {
		if !slices.Contains(flagWords, flag) {
			return fmt.Errorf("%s: unknown flag %q; there are %s", at, flag, strings.Join(flagWords, ", "))
		}
		f.flags = append(f.flags, flag)
	}
	return nil
}

func (f *file) addUse(text string, at place) error {
	words := strings.Fields(text)
	if len(words) != 3 || words[1] != "@use" || strings.Count(words[2], "/") != 1 {
		return fmt.Errorf("%s: %q is not of the form -- @use folder/name", at, text)
	}
	if path.Dir(words[2]) == "call" {
		return fmt.Errorf("%s: %s is a call, which clients use and no file does", at, words[2])
	}
	f.uses = append(f.uses, line{at, words[2]})
	return nil
}
