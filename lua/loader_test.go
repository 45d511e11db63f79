package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// tree makes a file system of path, content, ….
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

// top has a script with every shape of dependency: shared, nested, and named twice.
var top = tree(
	"top.lua", `-- top: needs a and b.
--
-- Flags    allow-oom        a full Redis must still drain
--
-- @include a
-- @include b
-- @include a

local x = 1

-- A remark.
return b(x) -- and one at the end
`,
	"include/a.lua", "-- a is needed by all.\nlocal function a() return 1 end",
	"include/b.lua", "-- b needs c, then a.\n--\n-- @include c\n-- @include a\n\nlocal function b()\n  -- why\n  return c() + a()\nend\n",
	"include/c.lua", "-- @include a\nlocal function c() return a() end\n",
	"include/unused.lua", "local function unused() end\n",
)

func TestComposition(t *testing.T) {
	const body = `local function a() return 1 end
local function c() return a() end
local function b()
  return c() + a()
end
local x = 1
return b(x) -- and one at the end
`
	for _, test := range []struct {
		claim string
		o     Options
		want  string
	}{
		{"an include comes once, after its own and before its users; comments are left out",
			Options{}, body},
		{"a shebang with the flags is the first line",
			Options{Shebang: true}, "#!lua flags=allow-oom\n" + body},
		{"a replaced include is another source, with its own includes",
			Options{Replace: map[string]string{"c": "\n-- @include unused\nlocal c = unused"}},
			strings.Replace(body, "local function c() return a() end", "local function unused() end\nlocal c = unused", 1)},
		{"what is replaced and not included changes nothing",
			Options{Replace: map[string]string{"unused": "local nothing"}}, body},
	} {
		t.Run(test.claim, func(t *testing.T) {
			l := load(t, top, test.o)
			if got := l.Source("top"); got != test.want {
				t.Errorf("composed is\n%s\nwant\n%s", got, test.want)
			}
			sum := sha1.Sum([]byte(test.want))
			if got, want := l.SHA("top"), hex.EncodeToString(sum[:]); got != want {
				t.Errorf("SHA = %s, want %s", got, want)
			}
		})
	}
}

func TestShebang(t *testing.T) {
	for _, test := range []struct{ claim, header, want string }{
		{"no line of flags", "-- a", "#!lua"},
		{"an empty line of flags", "-- Flags\n", "#!lua"},
		{"one flag", "-- Flags  no-writes", "#!lua flags=no-writes"},
		{"several flags", "-- Flags    no-writes allow-oom", "#!lua flags=no-writes,allow-oom"},
		{"words after two spaces are a remark", "-- Flags no-writes  and bold words", "#!lua flags=no-writes"},
		{"flags are read in the opening comment only", "-- a\n\n-- Flags no-writes", "#!lua"},
		{"a carriage return is no part of a flag", "-- Flags no-writes\r", "#!lua flags=no-writes"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			l := load(t, tree("a.lua", test.header+"\nreturn 1\n"), Options{Shebang: true})
			if got, want := l.Source("a"), test.want+"\nreturn 1\n"; got != want {
				t.Errorf("Source = %q, want %q", got, want)
			}
		})
	}
}

func TestWhatDoesNotFitTogetherIsAnErrorThatNamesTheFile(t *testing.T) {
	for _, test := range []struct {
		claim string
		fsys  fs.FS
		o     Options
		want  string
	}{
		{"a script includes what is not there",
			tree("s.lua", "-- s\n-- @include gone\n"), Options{},
			"lua/s.lua:2: include gone: open include/gone.lua: file does not exist"},
		{"an include includes what is not there",
			tree("s.lua", "-- @include a", "include/a.lua", "\n-- @include gone\n"), Options{},
			"lua/include/a.lua:2: include gone: open include/gone.lua: file does not exist"},
		{"two includes need each other",
			tree("s.lua", "-- @include a", "include/a.lua", "-- @include b", "include/b.lua", "--\n-- @include a"), Options{},
			"lua/include/b.lua:2: include cycle: a -> b -> a"},
		{"a cycle does not begin with the first include",
			tree("s.lua", "-- @include z", "include/z.lua", "-- @include a",
				"include/a.lua", "-- @include b", "include/b.lua", "-- @include a"), Options{},
			"lua/include/b.lua:1: include cycle: a -> b -> a"},
		{"an include needs itself",
			tree("s.lua", "-- @include a", "include/a.lua", "-- @include a"), Options{},
			"lua/include/a.lua:1: include cycle: a -> a"},
		{"a replacement makes a cycle",
			tree("s.lua", "-- @include a", "include/a.lua", "return 1"),
			Options{Replace: map[string]string{"a": "-- @include a"}},
			"replaced lua/include/a.lua:1: include cycle: a -> a"},
		{"a replacement has nothing to replace",
			tree("s.lua", "return 1"), Options{Replace: map[string]string{"now": ""}},
			"replace include now: open include/now.lua: file does not exist"},
		{"a flag is unknown",
			tree("s.lua", "-- s\n-- Flags    allow-oom, no-writes"), Options{},
			`lua/s.lua:2: unknown flag "allow-oom,"; there are allow-oom, no-writes`},
		{"an include has flags",
			tree("s.lua", "-- @include a", "include/a.lua", "-- Flags allow-oom\nreturn 1"), Options{},
			"lua/s.lua:1: include a: lua/include/a.lua: flags belong to a script, not to an include"},
		{"an include without a name",
			tree("s.lua", "-- @include\n"), Options{},
			`lua/s.lua:1: "-- @include" is not of the form -- @include name`},
		{"an include with two names",
			tree("s.lua", "-- @include a b\n"), Options{},
			`lua/s.lua:1: "-- @include a b" is not of the form -- @include name`},
		{"a directive is misspelt",
			tree("s.lua", "-- @inculde a\n"), Options{},
			`lua/s.lua:1: "-- @inculde a" is not of the form -- @include name`},
		{"a long string",
			tree("s.lua", "local s = [[\n-- no comment\n]]"), Options{},
			"lua/s.lua:1: long brackets are not supported: use quotes, or -- on each line"},
		{"a long comment",
			tree("s.lua", "return 1\n--[==[\nno code\n]==]"), Options{},
			"lua/s.lua:2: long brackets are not supported: use quotes, or -- on each line"},
		{"a string on two lines",
			tree("s.lua", "local s = \"a\\\n-- no comment\""), Options{},
			`lua/s.lua:1: a string continued on the next line is not supported: use .. and \n`},
	} {
		t.Run(test.claim, func(t *testing.T) {
			l, err := LoadFS(test.fsys, test.o)
			if err == nil {
				t.Fatalf("LoadFS composed %q, want the error %q", l.Source("s"), test.want)
			}
			if err.Error() != test.want {
				t.Errorf("LoadFS: %v\nwant    %s", err, test.want)
			}
		})
	}
}

func TestEveryLineKnowsWhereItWasWritten(t *testing.T) {
	l := load(t, top, Options{Shebang: true, Replace: map[string]string{"c": "-- here\nlocal c = a"}})
	var got []string
	for i := range strings.Count(l.Source("top"), "\n") + 1 {
		got = append(got, l.Locate("top", fmt.Sprintf("user_script:%d", i+1)))
	}
	want := []string{
		"lua/top.lua:1", // the shebang
		"lua/include/a.lua:2",
		"replaced lua/include/c.lua:2",
		"lua/include/b.lua:6", "lua/include/b.lua:8", "lua/include/b.lua:9",
		"lua/top.lua:9", "lua/top.lua:12",
		"user_script:9", // there is no such line
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines are from %q\nwant           %q", got, want)
	}
}

func TestAnUnknownScriptHasNoSource(t *testing.T) {
	l := load(t, tree("b.lua", "return 1", "a.lua", "return 1"), Options{})
	if got := l.Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Names = %q, want a and b", got)
	}
	if got := l.Source("c") + l.SHA("c"); got != "" {
		t.Errorf("Source and SHA = %q, want nothing", got)
	}
	if got := l.Locate("c", "user_script:1"); got != "user_script:1" {
		t.Errorf("Locate = %q, want the text as it was", got)
	}
}
