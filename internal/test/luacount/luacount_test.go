package luacount_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/curfew-dev/curfew/internal/test/luacount"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
)

var (
	update  = flag.Bool("update", false, "write testdata/costs.txt")
	profile = flag.String("profile", "heartbeat", "the call whose functions TestTheFunctionsOfACall lists")
)

// theatre is a server and a library.
type theatre struct {
	counter *luacount.Counter
	library *lua.Library
	facade  *lua.Facade
}

// open starts a server and a Counter. replace gives files of the Lua another text.
func open(t *testing.T, replace map[string]string) *theatre {
	t.Helper()
	library, err := lua.Load(lua.Options{Functions: true, Replace: replace})
	if err != nil {
		t.Fatal(err)
	}
	facade, err := lua.LoadFacade(replace)
	if err != nil {
		t.Fatal(err)
	}
	return &theatre{startCounter(t, facade.Text()), library, facade}
}

func startCounter(t *testing.T, library string) *luacount.Counter {
	t.Helper()
	if _, err := exec.LookPath(luacount.Interpreter); err != nil && os.Getenv("CURFEW_LUA") == "" {
		t.Skipf("there is no %s to count instructions with: `make lua` installs it and runs this test", luacount.Interpreter)
	}
	counter, err := luacount.New(library, redistest.Start(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := counter.Close(); err != nil {
			t.Errorf("%s: %v", luacount.Interpreter, err)
		}
	})
	return counter
}

// The instructions are those that luac5.1 -l lists, as often as they run.
func TestACallIsCountedExactly(t *testing.T) {
	t.Parallel()
	at := func(line int, c string) luacount.Place { return luacount.Place{First: 2, Line: line, C: c} }
	for _, row := range []struct {
		claim string
		body  []string // from line 3 on
		want  luacount.Cost
	}{
		{"a return is an instruction", []string{"return 1"}, luacount.Cost{at(3, ""): {Instructions: 2}}},
		{"the instructions of a loop count each time", []string{"local n = 0", "for i = 1, 10 do", "n = n + i", "end", "return n"},
			luacount.Cost{at(3, ""): {Instructions: 1}, at(4, ""): {Instructions: 3 + 1 + 11}, at(5, ""): {Instructions: 10}, at(7, ""): {Instructions: 1}}},
		{"the bytes of arguments and results count, and a function that is called back", []string{`local text = string.gsub("abab", "b",`,
			`function() return "ccc" end)`, "return text"},
			luacount.Cost{at(3, ""): {Instructions: 5}, at(4, ""): {Instructions: 1}, at(5, ""): {Instructions: 1},
				at(3, "string.gsub"): {Calls: 1, Bytes: len("abab") + len("b") + len("acccaccc")}, {4, 4, ""}: {Instructions: 4}}},
		{"an error that is caught", []string{"pcall(error, {})", `return redis.call("STRLEN", "missing")`},
			luacount.Cost{at(3, ""): {Instructions: 4}, at(3, "pcall"): {Calls: 1}, {0, 0, "error"}: {Calls: 1},
				at(4, ""): {Instructions: 5}, {0, 0, "redis.call"}: {Calls: 1, Bytes: len("STRLEN") + len("missing")}}},
		{"a function that only Redis has", []string{`local list = cjson.decode("[7]")`, "return list[1]"},
			luacount.Cost{at(3, ""): {Instructions: 4}, at(3, "cjson.decode"): {Calls: 1, Bytes: len("[7]")}, at(4, ""): {Instructions: 2}}},
	} {
		counter := startCounter(t, "#!lua name=x\nlocal function f(keys, args)\n"+strings.Join(row.body, "\n")+"\nend\n"+
			"redis.register_function{function_name = 'f', callback = f}\n")
		got := counter.Count(func() {
			if err := counter.Redis.FCall(t.Context(), "f", []string{"k"}, "aa").Err(); err != nil {
				t.Fatalf("%s: %v", row.claim, err)
			}
		})
		if !maps.Equal(got, row.want) {
			t.Errorf("%s:\n%s", row.claim, strings.Join(differences(got, row.want), "\n"))
		}
	}
}

// costs are the costs of all scenes, by scene and number of tasks.
type costs map[string]luacount.Cost

func one(sc scene) string  { return sc.name + ": one" }
func many(sc scene) string { return sc.name + ": many" }

func measure(t *testing.T, in *theatre, scenes []scene) costs {
	t.Helper()
	all := costs{}
	for _, sc := range scenes {
		all[one(sc)] = sc.play(t, in, 1)
		if !sc.single {
			all[many(sc)] = sc.play(t, in, 1+more)
		}
	}
	return all
}

// rows returns the costs as lines of testdata/costs.txt.
func (c costs) rows(scenes []scene, library *lua.Facade) string {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.TabIndent)
	fmt.Fprintln(table, "call\ttasks\tinstructions\tcommands\tC calls\tbytes\tfiles")
	for _, sc := range scenes {
		w, commands := c[one(sc)].Total()
		fmt.Fprintf(table, "%s\tone\t%d\t%d\t%d\t%d\t%d\n", sc.name, w.Instructions, commands, w.Calls, w.Bytes, len(c[one(sc)].Files(library)))
		if sc.single {
			continue
		}
		all, allCommands := c[many(sc)].Total()
		each := func(all, one int) float64 { return float64(all-one) / more }
		fmt.Fprintf(table, "%s\teach further\t%.1f\t%.1f\t%.1f\t%.1f\n", sc.name, each(all.Instructions, w.Instructions),
			each(allCommands, commands), each(all.Calls, w.Calls), each(all.Bytes, w.Bytes))
	}
	table.Flush()
	return out.String()
}

const table = "testdata/costs.txt"

// The costs are the same in each run and on each server. So a changed figure comes from a change of the Lua, or of what the
// client sends.
func TestTheCostOfEachCall(t *testing.T) {
	t.Parallel()
	in := open(t, nil)
	today, again := measure(t, in, scenes), measure(t, open(t, nil), scenes)
	for name, cost := range today {
		if !maps.Equal(cost, again[name]) {
			t.Errorf("%s differs on a second server:\n%s", name, strings.Join(differences(cost, again[name]), "\n"))
		}
	}
	text := today.rows(scenes, in.facade)
	if *update {
		if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if changes := compare(string(kept), text); len(changes) > 0 {
		t.Errorf("The costs have changed. If that is meant, `make lua UPDATE=1` writes them to internal/test/luacount/%s: commit it with the change. "+
			"`make lua PROFILE=fetch` lists the functions of a call by their cost.\n%s", table, strings.Join(changes, "\n"))
	}
}

// differences returns the places whose work is not the same.
func differences(a, b luacount.Cost) []string {
	var lines []string
	for at := range maps.Keys(a) {
		if a[at] != b[at] {
			lines = append(lines, fmt.Sprintf("%+v: %+v, %+v", at, a[at], b[at]))
		}
	}
	for at := range maps.Keys(b) {
		if _, both := a[at]; !both {
			lines = append(lines, fmt.Sprintf("%+v: nothing, %+v", at, b[at]))
		}
	}
	slices.Sort(lines)
	return lines
}

var columns = regexp.MustCompile(`\s{2,}`)

// compare returns a line for each figure that two tables do not share: "fetch, one: instructions 2260, were 2250".
func compare(before, now string) []string {
	read := func(text string) (names []string, figures map[string]string) {
		figures = map[string]string{}
		var head []string
		for line := range strings.Lines(text) {
			words := columns.Split(strings.TrimSpace(line), -1)
			if head == nil {
				head = words
			}
			for i := 2; i < min(len(words), len(head)); i++ {
				name := words[0] + ", " + words[1] + ": " + head[i]
				names, figures[name] = append(names, name), words[i]
			}
		}
		return names, figures
	}
	names, old := read(before)
	more, figures := read(now)
	var changes []string
	for _, name := range names {
		if figures[name] != old[name] {
			changes = append(changes, fmt.Sprintf("%s %s, were %s", name, figures[name], old[name]))
		}
	}
	for _, name := range more {
		if _, known := old[name]; !known {
			changes = append(changes, fmt.Sprintf("%s %s, were unknown", name, figures[name]))
		}
	}
	return changes
}

func TestAUselessLoopIsFound(t *testing.T) {
	t.Parallel()
	now, err := os.ReadFile("../../../lua/store/now.lua")
	if err != nil {
		t.Fatal(err)
	}
	slow := strings.Replace(string(now), `local t = redis.call("TIME")`, `local t = redis.call("TIME")
  for _ = 1, 100 do
  end`, 1)
	heartbeat := scenes[slices.IndexFunc(scenes, func(sc scene) bool { return sc.name == "heartbeat" })]
	played := []scene{heartbeat}
	in, slowed := open(t, nil), open(t, map[string]string{"store/now": slow})
	before := measure(t, in, played).rows(played, in.facade)
	after := measure(t, slowed, played).rows(played, slowed.facade)
	var figures []int
	changes := compare(before, after)
	for _, change := range changes {
		var was, is int
		if _, err := fmt.Sscanf(change, "heartbeat, one: instructions %d, were %d", &is, &was); err == nil {
			figures = append(figures, is-was)
		}
	}
	// The loop is three LOADK, FORPREP and 101 FORLOOP.
	if want := []int{105}; len(changes) != 1 || !slices.Equal(figures, want) {
		t.Errorf("the changes are %q, want one of %d instructions", changes, want)
	}
}

func TestTheFunctionsOfACall(t *testing.T) {
	t.Parallel()
	i := slices.IndexFunc(scenes, func(sc scene) bool { return sc.name == *profile })
	if i < 0 {
		var names []string
		for _, sc := range scenes {
			names = append(names, sc.name)
		}
		t.Fatalf("%q is not a call that is counted. These are: %s", *profile, strings.Join(names, ", "))
	}
	in, sc := open(t, nil), scenes[i]
	all := measure(t, in, []scene{sc})
	text := all[one(sc)].Profile(in.facade)
	t.Logf("%s, one task\n%s", sc.name, text)
	if !sc.single {
		t.Logf("%s, %d tasks\n%s", sc.name, 1+more, all[many(sc)].Profile(in.facade))
	}
	sum := 0
	for line := range strings.Lines(text) {
		var n int
		if _, err := fmt.Sscanf(line, "%d %f%%", &n, new(float64)); err == nil {
			sum += n
		}
	}
	if total, _ := all[one(sc)].Total(); sum != total.Instructions || !strings.Contains(text, "lua/store/now.lua:3 now\n") {
		t.Errorf("the rows have %d instructions, want %d, and one of them is of lua/store/now.lua:3 now", sum, total.Instructions)
	}
}
