package lua

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/redis/go-redis/v9"
)

// tree returns a file system of path, content, ….
func tree(pairs ...string) fs.FS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

func load(t *testing.T, fsys fs.FS, o Options) *Library {
	t.Helper()
	l, err := LoadFS(fsys, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// top has calls with every form of dependency: shared, nested, and named twice.
var top = tree(
	"call/top.lua", `-- top: needs a and b.
--
-- Flags    allow-oom        a full Redis must still drain
--
-- @use part/a
-- @use part/b

local x = 1

-- A remark.
local function top(keys)
  return b(x, keys) -- and one at the end
end
`,
	"call/look.lua", "-- Flags no-writes\n--\n-- @use part/a\nlocal look = a\n",
	"part/a.lua", "-- a is needed by all.\nlocal function a() return 1 end",
	"part/b.lua", "-- b needs c, then a.\n--\n-- @use other/c\n-- @use part/a\n\nlocal function b()\n  -- why\n  return c() + a()\nend\n",
	"other/c.lua", "-- @use part/a\nlocal function c() return a() end\n",
	"other/unused.lua", "local function unused() end\n",
)

const (
	textFiles = "local files = {}\n"
	textA     = `files["part/a"] = (function()
local function a() return 1 end
return {a = a} end)()
`
	textC = `files["other/c"] = (function(a)
local function c() return a() end
return {c = c} end)(files["part/a"].a)
`
	textB = `files["part/b"] = (function(c, a)
local function b()
  return c() + a()
end
return {b = b} end)(files["other/c"].c, files["part/a"].a)
`
	textTop = `files["call/top"] = (function(a, b)
local x = 1
local function top(keys)
  return b(x, keys) -- and one at the end
end
return {top = top} end)(files["part/a"].a, files["part/b"].b)
`
	textLook = `files["call/look"] = (function(a)
local look = a
return {look = look} end)(files["part/a"].a)
`
	textThree = `files["part/a"] = (function()
local c = 3
local b = c
local a = 1
return {a = a, b = b} end)()
files["call/look"] = (function(b, a)
local look = a or b
return {look = look} end)(files["part/a"].b, files["part/a"].a)
`
	// textUnused is a replacement of file c that uses another file.
	textUnused = `files["other/unused"] = (function()
local function unused() end
return {unused = unused} end)()
files["other/c"] = (function(unused)
local c = unused
return {c = c} end)(files["other/unused"].unused)
`
)

func TestAScriptContainsTheFilesThatItsCallUses(t *testing.T) {
	const body = textFiles + textA + textC + textB + textTop + "return files[\"call/top\"].top(KEYS, ARGV)\n"
	for _, test := range []struct {
		claim, call string
		o           Options
		want        string
	}{
		{"a file comes once, after the files that it uses; comments are left out", "top",
			Options{}, body},
		{"files that a call does not use are not in its script", "look",
			Options{}, textFiles + textA + textLook + "return files[\"call/look\"].look(KEYS, ARGV)\n"},
		{"a server with functions gets the flags of a script", "top",
			Options{Functions: true}, "#!lua flags=allow-oom\n" + body},
		{"a replaced file has its own uses", "top",
			Options{Replace: map[string]string{"other/c": "\n-- @use other/unused\nlocal c = unused"}},
			strings.Replace(body, textC, textUnused, 1)},
		{"a file returns all that others use of it, and no more", "look",
			Options{Replace: map[string]string{"part/a": "local c = 3\nlocal b = c\nlocal a = 1", "call/look": "-- @use part/a: b, a\nlocal look = a or b"}},
			textFiles + textThree + "return files[\"call/look\"].look(KEYS, ARGV)\n"},
		{"a replaced file that is not used changes nothing", "top",
			Options{Replace: map[string]string{"other/unused": "local unused"}}, body},
	} {
		t.Run(test.claim, func(t *testing.T) {
			l := load(t, top, test.o)
			if got := l.Source(test.call); got != test.want {
				t.Errorf("Source =\n%s\nwant\n%s", got, test.want)
			}
			if got, want := l.calls[test.call].script().sha, digest(test.want); got != want {
				t.Errorf("sha = %s, want %s", got, want)
			}
		})
	}
}

func TestTheLibraryContainsEachFileOnceAndRegistersEachCall(t *testing.T) {
	l := load(t, top, Options{Functions: true})
	body := textFiles + textA + textLook + textC + textB + textTop
	name := "curfew_" + digest(body + "call/look no-writes\ncall/top allow-oom\n")[:12]
	want := "#!lua name=" + name + "\n" + body +
		"redis.register_function{function_name = \"" + name + "_look\", callback = files[\"call/look\"].look, flags = {\"no-writes\"}}\n" +
		"redis.register_function{function_name = \"" + name + "_top\", callback = files[\"call/top\"].top, flags = {\"allow-oom\"}}\n"
	if got := l.Text(); got != want {
		t.Errorf("Text =\n%s\nwant\n%s", got, want)
	}
}

func TestARequestNamesACallByItsFunctionOrItsScript(t *testing.T) {
	for _, test := range []struct {
		o    Options
		form string
	}{
		{Options{Functions: true}, "^curfew_[0-9a-f]{12}_top$"},
		{Options{}, "^[0-9a-f]{40}$"},
	} {
		l := load(t, top, test.o)
		if got := l.Handle("top"); !regexp.MustCompile(test.form).MatchString(got) {
			t.Errorf("Handle with %+v = %q, want the form %s", test.o, got, test.form)
		}
		if got := l.Handle("gone"); got != "" {
			t.Errorf("Handle of an unknown call = %q, want an empty text", got)
		}
	}
}

// Two versions of a program share a server during an upgrade.
func TestAnotherTextHasOtherNames(t *testing.T) {
	const a = "local function a() return 1 end"
	one := load(t, tree("call/a.lua", a), Options{Functions: true})
	for _, test := range []struct {
		claim, text string
		o           Options
		same        bool
	}{
		{"the same text", a, Options{Functions: true}, true},
		{"another comment changes nothing", "-- a\n\n" + a, Options{Functions: true}, true},
		{"another text", strings.Replace(a, "1", "2", 1), Options{Functions: true}, false},
		{"a file that is replaced by the same text", "local function a() end", Options{Functions: true, Replace: map[string]string{"call/a": a}}, true},
	} {
		other := load(t, tree("call/a.lua", test.text), test.o)
		if same := other.Handle("a") == one.Handle("a"); same != test.same {
			t.Errorf("%s: the names are %s and %s, same = %t, want %t", test.claim, one.Handle("a"), other.Handle("a"), same, test.same)
		}
	}
	// Redis keeps the flags of the first load, so the flags are part of the digest.
	flagged := load(t, tree("call/a.lua", "-- Flags no-writes\n"+a), Options{Functions: true})
	if flagged.Handle("a") == one.Handle("a") {
		t.Errorf("the function has the name %s with and without a flag", one.Handle("a"))
	}
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		claim, header string
		want          []string
	}{
		{"no line of flags", "-- a", nil},
		{"an empty line of flags", "-- Flags\n", nil},
		{"one flag", "-- Flags  no-writes", []string{"no-writes"}},
		{"several flags", "-- Flags    no-writes allow-oom", []string{"no-writes", "allow-oom"}},
		{"words after two spaces are a remark", "-- Flags no-writes  and bold words", []string{"no-writes"}},
		{"flags are read in the opening comment only", "-- a\n\n-- Flags no-writes", nil},
		{"a carriage return is not part of a flag", "-- Flags no-writes\r", []string{"no-writes"}},
	} {
		t.Run(test.claim, func(t *testing.T) {
			l := load(t, tree("call/a.lua", test.header+"\nlocal a = 1\n"), Options{Functions: true})
			shebang, listed := "#!lua", ""
			if test.want != nil {
				shebang += " flags=" + strings.Join(test.want, ",")
				listed = `"` + strings.Join(test.want, `", "`) + `"`
			}
			if got, want := l.Reads("a"), slices.Contains(test.want, "no-writes"); got != want || l.Reads("unknown") {
				t.Errorf("Reads = %t, want %t, and false for an unknown call", got, want)
			}
			if got, _, _ := strings.Cut(l.Source("a"), "\n"); got != shebang {
				t.Errorf("the script begins with %q, want %q", got, shebang)
			}
			if want := "callback = files[\"call/a\"].a, flags = {" + listed + "}}\n"; !strings.HasSuffix(l.Text(), want) {
				t.Errorf("Text =\n%s\nwant it to end with %q", l.Text(), want)
			}
		})
	}
}

func TestLoadFailsAndNamesTheFileIfFilesDoNotFitTogether(t *testing.T) {
	const s = "\nlocal function s() end"
	for _, test := range []struct {
		claim string
		fsys  fs.FS
		o     Options
		want  string
	}{
		{"a call uses a missing file",
			tree("call/s.lua", "-- s\n-- @use p/gone"+s), Options{},
			"lua/call/s.lua:2: use p/gone: open p/gone.lua: file does not exist"},
		{"another file uses a missing file",
			tree("call/s.lua", "-- @use p/a"+s, "p/a.lua", "\n-- @use p/gone\nlocal a = 1"), Options{},
			"lua/p/a.lua:2: use p/gone: open p/gone.lua: file does not exist"},
		{"two files use each other",
			tree("call/s.lua", "-- @use p/a"+s, "p/a.lua", "-- @use p/b\nlocal a = b", "p/b.lua", "--\n-- @use p/a\nlocal b = a"), Options{},
			"lua/p/b.lua:2: use p/a: cycle: p/a -> p/b -> p/a"},
		{"a cycle does not begin with the first use",
			tree("call/s.lua", "-- @use p/z"+s, "p/z.lua", "-- @use p/a\nlocal z = a",
				"p/a.lua", "-- @use p/b\nlocal a = b", "p/b.lua", "-- @use p/a\nlocal b = a"), Options{},
			"lua/p/b.lua:1: use p/a: cycle: p/a -> p/b -> p/a"},
		{"a file uses itself",
			tree("call/s.lua", "-- @use p/a"+s, "p/a.lua", "-- @use p/a\nlocal a = 1"), Options{},
			"lua/p/a.lua:1: use p/a: cycle: p/a -> p/a"},
		{"a replacement makes a cycle",
			tree("call/s.lua", "-- @use p/a"+s, "p/a.lua", "local a = 1"),
			Options{Replace: map[string]string{"p/a": "-- @use p/a\nlocal a = 1"}},
			"replaced lua/p/a.lua:1: use p/a: cycle: p/a -> p/a"},
		{"a replacement has nothing to replace",
			tree("call/s.lua", s), Options{Replace: map[string]string{"p/now": ""}},
			"replace p/now: open p/now.lua: file does not exist"},
		{"a call is used",
			tree("call/s.lua", "-- s\n-- @use call/r"+s, "call/r.lua", "local r = 1"), Options{},
			"lua/call/s.lua:2: call/r is a call: only clients can use it"},
		{"a call does not define its name",
			tree("call/s.lua", "-- s\nlocal function r() end"), Options{},
			"lua/call/s.lua: it must define s, the name of the call"},
		{"another file does not define its name",
			tree("call/s.lua", "-- @use p/a"+s, "p/a.lua", "a = 1"), Options{},
			"lua/call/s.lua:1: use p/a: lua/p/a.lua does not define a"},
		{"a file does not define what another needs",
			tree("call/s.lua", "-- @use p/a: b, a"+s, "p/a.lua", "local a = 1\nif a then local b = 1 end"), Options{},
			"lua/call/s.lua:1: use p/a: lua/p/a.lua does not define b"},
		{"a name that only begins with the file's name is another name",
			tree("call/s.lua", "local function so() end"), Options{},
			"lua/call/s.lua: it must define s, the name of the call"},
		{"a name in a block is private",
			tree("call/s.lua", "do\n  local s = 1\nend"), Options{},
			"lua/call/s.lua: it must define s, the name of the call"},
		{"a flag is unknown",
			tree("call/s.lua", "-- s\n-- Flags    allow-oom, no-writes"+s), Options{},
			`lua/call/s.lua:2: unknown flag "allow-oom,": use allow-oom, no-writes`},
		{"a file that is not a call has flags",
			tree("call/s.lua", "-- @use p/a"+s, "p/a.lua", "-- Flags allow-oom\nlocal a = 1"), Options{},
			"lua/call/s.lua:1: use p/a: lua/p/a.lua:1: only files of call/ and facade/ can have flags"},
		{"a use without a name",
			tree("call/s.lua", "-- @use"+s), Options{},
			`lua/call/s.lua:1: "-- @use" is not of the form -- @use folder/file, or -- @use folder/file: name, name`},
		{"a use without a folder",
			tree("call/s.lua", "-- @use a"+s), Options{},
			`lua/call/s.lua:1: "-- @use a" is not of the form -- @use folder/file, or -- @use folder/file: name, name`},
		{"a use of a folder in a folder",
			tree("call/s.lua", "-- @use a/b/c"+s), Options{},
			`lua/call/s.lua:1: "-- @use a/b/c" is not of the form -- @use folder/file, or -- @use folder/file: name, name`},
		{"a use with two names",
			tree("call/s.lua", "-- @use p/a p/b"+s), Options{},
			`lua/call/s.lua:1: "-- @use p/a p/b" is not of the form -- @use folder/file, or -- @use folder/file: name, name`},
		{"a use with a colon and no name",
			tree("call/s.lua", "-- @use p/a:"+s), Options{},
			`lua/call/s.lua:1: "-- @use p/a:" is not of the form -- @use folder/file, or -- @use folder/file: name, name`},
		{"a directive is misspelt",
			tree("call/s.lua", "-- @include p/a"+s), Options{},
			`lua/call/s.lua:1: "-- @include p/a" is not of the form -- @use folder/file, or -- @use folder/file: name, name`},
		{"a long string",
			tree("call/s.lua", "local s = [[\n-- no comment\n]]"), Options{},
			"lua/call/s.lua:1: long brackets are not supported: use quotes, or -- on each line"},
		{"a long comment",
			tree("call/s.lua", "local s = 1\n--[==[\nno code\n]==]"), Options{},
			"lua/call/s.lua:2: long brackets are not supported: use quotes, or -- on each line"},
		{"a string on two lines",
			tree("call/s.lua", "local s = \"a\\\n-- no comment\""), Options{},
			`lua/call/s.lua:1: a string continued on the next line is not supported: use .. and \n`},
	} {
		t.Run(test.claim, func(t *testing.T) {
			l, err := LoadFS(test.fsys, test.o)
			if err == nil {
				t.Fatalf("LoadFS = %q, want the error %q", l.Source("s"), test.want)
			}
			if err.Error() != test.want {
				t.Errorf("LoadFS: %v\nwant    %s", err, test.want)
			}
		})
	}
}

func TestEveryLineOfAScriptHasAPlace(t *testing.T) {
	l := load(t, top, Options{Functions: true, Replace: map[string]string{"other/c": "-- here\nlocal c = a"}})
	got := places(l, "top", "user_script", strings.Count(l.Source("top"), "\n"))
	want := []string{
		"lua/call/top.lua:1", // the shebang
		"lua/call/top.lua:1", // the table of files
		"lua/part/a.lua:1", "lua/part/a.lua:2", "lua/part/a.lua:1",
		"replaced lua/other/c.lua:1", "replaced lua/other/c.lua:2", "replaced lua/other/c.lua:1",
		"lua/part/b.lua:1", "lua/part/b.lua:6", "lua/part/b.lua:8", "lua/part/b.lua:9", "lua/part/b.lua:1",
		"lua/call/top.lua:1", "lua/call/top.lua:8", "lua/call/top.lua:11", "lua/call/top.lua:12", "lua/call/top.lua:13", "lua/call/top.lua:1",
		"lua/call/top.lua:1", // the call
		"user_script:21",     // a line behind the last
	}
	if !slices.Equal(got, want) {
		t.Errorf("places are %q\nwant       %q", got, want)
	}
}

func TestEveryLineOfTheLibraryHasAPlace(t *testing.T) {
	l := load(t, tree("call/y.lua", "--\n-- @use p/a\n\nlocal y = a", "call/x.lua", "-- @use p/a\nlocal x = a", "p/a.lua", "\nlocal a = 1"), Options{Functions: true})
	got := places(l, "y", "user_function", strings.Count(l.Text(), "\n"))
	want := []string{
		"lua:1", // the shebang
		"lua:1", // the table of files
		"lua/p/a.lua:1", "lua/p/a.lua:2", "lua/p/a.lua:1",
		"lua/call/x.lua:1", "lua/call/x.lua:2", "lua/call/x.lua:1",
		"lua/call/y.lua:1", "lua/call/y.lua:4", "lua/call/y.lua:1",
		"lua/call/x.lua:1", "lua/call/y.lua:1", // the registrations
		"user_function:14", // a line behind the last
	}
	if !slices.Equal(got, want) {
		t.Errorf("places are %q\nwant       %q", got, want)
	}
}

// Lua allows no more than 200 local variables.
func TestManyFilesFitIntoOneText(t *testing.T) {
	t.Parallel()
	const calls, parts = 20, 20 // a file can use some 60 others
	var files []string
	for c := range calls {
		var uses, sum strings.Builder
		for p := range parts {
			name := fmt.Sprintf("p%d_%d", c, p)
			files = append(files, "part/"+name+".lua", fmt.Sprintf("local %s = %d", name, p))
			fmt.Fprintf(&uses, "-- @use part/%s\n", name)
			fmt.Fprintf(&sum, " + %s", name)
		}
		name := fmt.Sprintf("c%d", c)
		files = append(files, "call/"+name+".lua", fmt.Sprintf("%slocal function %s() return 0%s end", &uses, name, &sum))
	}
	rdb := client(t, &redis.Options{Network: "unix", Addr: startServer(t)})
	l := load(t, tree(files...), Options{Functions: true})
	must(t, rdb.FunctionLoad(t.Context(), l.Text()))
	if got, err := l.Run(t.Context(), rdb, "c7", "key"); err != nil || got != int64(parts*(parts-1)/2) {
		t.Errorf("Run = %v, %v", got, err)
	}
}

// places returns the places of the n lines of a text, and of the line behind the last.
func places(l *Library, call, chunk string, n int) []string {
	var found []string
	for i := range n + 1 {
		found = append(found, l.Locate(call, fmt.Sprintf("%s:%d", chunk, i+1)))
	}
	return found
}

func TestAnUnknownCallHasNoSource(t *testing.T) {
	l := load(t, tree("call/b.lua", "local b = 1", "call/a.lua", "local a = 1", "p/c.lua", "local c = 1"), Options{})
	if got := l.Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Names = %q, want a and b", got)
	}
	if got := l.Source("c") + l.Handle("c"); got != "" {
		t.Errorf("Source and Handle = %q, want empty texts", got)
	}
	if got := l.Locate("c", "user_script:1"); got != "user_script:1" {
		t.Errorf("Locate = %q, want the text unchanged", got)
	}
}

func TestCallsAreComposedOnceInAProcess(t *testing.T) {
	clock := func() map[string]string { return map[string]string{"store/now": "local function now() return 1 end"} }
	var all []*call // one of each library
	for range 2 {
		for _, o := range []Options{{}, {Functions: true}, {Replace: clock()}, {Functions: true, Replace: clock()}} {
			l, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l.calls["open"])
		}
	}
	if !slices.Equal(all[:4], all[4:]) {
		t.Error("Load with the same options composed the calls again")
	}
	different := maps.Collect(func(yield func(*call, bool) bool) {
		for _, l := range all {
			yield(l, true)
		}
	})
	if len(different) != 4 {
		t.Errorf("Load with 4 different options composed %d libraries, want 4", len(different))
	}
	one, _ := Load(Options{Functions: true})
	other, _ := Load(Options{Functions: true})
	one.refused.Store(1)
	if other.refused.Load() != 0 {
		t.Error("Libraries with the same options share what a server refused")
	}
	if _, err := Load(Options{Replace: map[string]string{"store/gone": ""}}); err == nil {
		t.Error("Load replaced a missing file, want an error")
	}
}
