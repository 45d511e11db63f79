package facade

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/field"
)

// function is what docs/reference/protocol.md tells of a function.
type function struct {
	reads    bool
	names    []string          // of its arguments
	defaults map[string]string // of its arguments
	replies  []string          // names that each implementation must have
	known    []string          // other words of the reply's description
}

var (
	quoted      = regexp.MustCompile("`([a-z_]+)[^`]*`")
	withDefault = regexp.MustCompile("`([a-z_]+)` \\(`?([^;,)`]+)")
	parentheses = regexp.MustCompile(`\([^()]*\)`)
)

func words(cell string) (all []string) {
	for _, found := range quoted.FindAllStringSubmatch(cell, -1) {
		all = append(all, found[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// table returns the cells of the rows below a line of the page.
func table(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n"+heading+"\n")
	_, after, found2 := strings.Cut(after, "|---|")
	if !found || !found2 {
		t.Fatalf("%s has no table below %q", page, heading)
	}
	for _, line := range strings.Split(after, "\n")[1:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows = append(rows, strings.Split(strings.Trim(line, "|"), " |"))
	}
	return rows
}

// described returns what the page tells of each function.
func described(t *testing.T) map[string]function {
	t.Helper()
	var fields, claim []string
	for _, row := range table(t, "### Fields of a task") {
		fields = append(fields, words(parentheses.ReplaceAllString(row[0], ""))...)
	}
	for _, row := range table(t, "### Claims") {
		claim = append(claim, words(row[0])...)
	}
	all := map[string]function{}
	for _, row := range table(t, "## Functions") {
		name := words(row[0])[0]
		f := function{reads: strings.Contains(row[0], "(RO)"), names: words(parentheses.ReplaceAllString(row[2], "")), defaults: map[string]string{},
			replies: words(parentheses.ReplaceAllString(row[3], "")), known: words(row[3])}
		for _, found := range withDefault.FindAllStringSubmatch(row[2], -1) {
			f.defaults[found[1]] = found[2]
		}
		switch name {
		case "curfew_enqueue", "curfew_enqueue_many":
			f.names = fields
		case "curfew_fetch":
			f.replies, f.known = append(f.replies, claim...), append(f.known, claim...)
		}
		slices.Sort(f.names)
		all[name] = f
	}
	return all
}

func source(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../../lua/" + file + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	aTable   = regexp.MustCompile(`(?s)parameters = (\{.*?\})|options\.read\(argv, \d, (\{.*?\})`)
	aName    = regexp.MustCompile(`(\w+) = true`)
	aDefault = regexp.MustCompile(`(?:count|span)_of\(args, "(\w+)", "(\d+)"|args\.(queues|events|figures) or "(\w+)"`)
)

// The page has each function, each name of an argument and each default, as they are in the Lua, and no others.
func TestThePageHasEachFunctionAndArgument(t *testing.T) {
	page, facade := described(t), load(t)
	if got := slices.Sorted(maps.Keys(page)); !slices.Equal(got, facade.Names()) {
		t.Errorf("the page has the functions %v, want %v", got, facade.Names())
	}
	for _, name := range facade.Names() {
		f, text := page[name], source(t, "facade/"+name)
		if f.reads != facade.Reads(name) {
			t.Errorf("%s: RO on the page is %v, want %v", name, f.reads, facade.Reads(name))
		}
		var taken []string
		if strings.Contains(text, "@use named/task: read_task") {
			for _, f := range field.All {
				if f.By != field.Client && f.Name != "kind" { // the kind comes first, without its name
					taken = append(taken, f.Plain())
				}
			}
		}
		for _, found := range aTable.FindAllStringSubmatch(text, -1) {
			for _, arg := range aName.FindAllStringSubmatch(found[1]+found[2], -1) {
				taken = append(taken, arg[1])
			}
		}
		slices.Sort(taken)
		taken = slices.DeleteFunc(slices.Compact(taken), func(arg string) bool { // the page names the duration itself
			span, is := strings.CutSuffix(arg, "_ms")
			return is && slices.Contains(f.names, span)
		})
		if !slices.Equal(f.names, taken) {
			t.Errorf("%s: the page has the arguments %v, and the function takes %v", name, f.names, taken)
		}
		for _, found := range aDefault.FindAllStringSubmatch(text, -1) {
			arg, want := found[1]+found[3], found[2]+found[4]
			got := f.defaults[arg]
			if ms := map[string]string{"30s": "30000", "500ms": "500"}[got]; ms != "" {
				got = ms
			}
			if want != "0" && got != want {
				t.Errorf("%s: the default of %s is %q on the page, and %s in the function", name, arg, got, want)
			}
		}
	}
}

var (
	rejected = regexp.MustCompile(`reject\("([A-Z]+)"|^  ([A-Z]+) = function`) // the second in named/task.lua
	mapped   = regexp.MustCompile(`", "([A-Z]+)"\}`)                           // of errors of calls, in named/reply.lua
	listed   = regexp.MustCompile(`(?m)^--   (?:word  |      )([A-Z]+) `)
)

// The page has each word of an error, and no others: those that the Lua rejects with, and those that its comment lists.
func TestThePageHasEachErrorWord(t *testing.T) {
	var onPage, inComment []string
	for _, row := range table(t, "## Errors") {
		onPage = append(onPage, strings.Trim(row[0], " `"))
	}
	for _, found := range listed.FindAllStringSubmatch(source(t, "named/options"), -1) {
		inComment = append(inComment, found[1])
	}
	used := map[string]bool{}
	for _, found := range mapped.FindAllStringSubmatch(source(t, "named/reply"), -1) {
		used[found[1]] = true
	}
	for _, folder := range []string{"facade", "named"} {
		files, err := filepath.Glob("../../../lua/" + folder + "/*.lua")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for line := range strings.Lines(source(t, folder+"/"+strings.TrimSuffix(filepath.Base(file), ".lua"))) {
				for _, found := range rejected.FindAllStringSubmatch(line, -1) {
					used[found[1]+found[2]] = true
				}
			}
		}
	}
	slices.Sort(onPage)
	slices.Sort(inComment)
	if inLua := slices.Sorted(maps.Keys(used)); !slices.Equal(onPage, inLua) || !slices.Equal(onPage, inComment) {
		t.Errorf("words of errors\non the page                %v\nin the Lua                 %v\nin lua/named/options.lua    %v", onPage, inLua, inComment)
	}
}

// Each function, each word of an error and each name of a reply that the page has is in a vector.
func TestTheVectorsShowEachReply(t *testing.T) {
	shown, refused := map[string]map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob("../../../docs/vectors/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, c := range readVectors(t, file).Cases {
			for _, s := range c.Steps {
				if len(s.Do) < 2 || !strings.HasPrefix(s.Do[1], "curfew_") {
					continue
				}
				if shown[s.Do[1]] == nil {
					shown[s.Do[1]] = map[string]bool{}
				}
				namesIn(s.Reply, shown[s.Do[1]])
				if word, is := strings.CutPrefix(s.Error, "CURFEW "); is {
					refused[strings.Fields(word)[0]] = true
				}
			}
		}
	}
	for name, f := range described(t) {
		if name == "curfew_enqueue" { // its reply is an id
			f.replies = nil
		}
		if shown[name] == nil {
			t.Errorf("no vector calls %s", name)
		}
		for _, reply := range f.replies {
			if !shown[name][reply] {
				t.Errorf("no vector shows %s in a reply of %s", reply, name)
			}
		}
	}
	for _, row := range table(t, "## Errors") {
		if word := strings.Trim(row[0], " `"); !refused[word] {
			t.Errorf("no vector shows the error CURFEW %s", word)
		}
	}
}

// namesIn collects the names of a pattern.
func namesIn(pattern any, names map[string]bool) {
	switch pattern := pattern.(type) {
	case map[string]any:
		for name, value := range pattern {
			names[name] = true
			namesIn(value, names)
		}
	case []any:
		for _, element := range pattern {
			namesIn(element, names)
		}
	}
}

// unknownNames returns names of a reply that the page does not have.
func unknownNames(page map[string]function, name string, reply any) (unknown []string) {
	f, found := page[name]
	list, is := reply.([]any)
	if !found || !is || name == "curfew_get" { // the names of a record are in docs/reference/keys.md
		return nil
	}
	if name == "curfew_enqueue_many" {
		for _, receipt := range list {
			unknown = append(unknown, strange(f, receipt)...)
		}
		return unknown
	}
	return strange(f, list)
}

func strange(f function, reply any) (unknown []string) {
	for name, value := range named(reply) {
		if !slices.Contains(f.known, name) {
			unknown = append(unknown, name)
		}
		lists, _ := value.([]any)
		for _, list := range lists {
			if _, is := list.([]any); is {
				unknown = append(unknown, strange(f, list)...)
			}
		}
	}
	return unknown
}

func TestNamesThatThePageDoesNotHaveAreFound(t *testing.T) {
	page := described(t)
	reply := []any{"now", "1", "stops", []any{[]any{"id", "0-A", "odd", "1"}}, "extra", "2"}
	got := unknownNames(page, "curfew_heartbeat", reply)
	slices.Sort(got)
	if fmt.Sprint(got) != "[extra odd]" {
		t.Errorf("unknown names %v, want [extra odd]", got)
	}
}
