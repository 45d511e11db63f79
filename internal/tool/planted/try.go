package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	luaparse "github.com/yuin/gopher-lua/parse"
)

// The model plays these sequences of 40 steps, which are more than 10,000 steps.
var modelArgs = []string{"-rapid.seed=7", "-rapid.checks=250", "-rapid.shrinktime=1ms", "-rapid.nofailfile"}

// packagesOfLua are the packages that run the Lua and are tried after the stories and the model, the fastest first.
var packagesOfLua = []string{"internal/audit", "lua", "internal/test/facade", "internal/claim", "queue", "reaper", "events", "agentwait", "worker", "inspect",
	"internal/test/requirements", "flow", "httpapi"}

// nearest are the packages that are tried first for the Lua of a folder.
var nearest = map[string]string{"facade": "internal/test/facade", "named": "internal/test/facade", "explain": "inspect", "repair": "internal/audit"}

// dependents are the packages whose tests are tried for the Go of a package after its own.
var dependents = map[string][]string{
	"queue": {"worker", "agentwait", "inspect", "internal/test/misuse"}, "reaper": {"worker", "internal/test/requirements"}, "worker": {"agentwait", "internal/test/requirements"},
	"agentwait": {"flow"}, "events": {"httpapi"}, "httpapi": {"cmd/curfew"}, "inspect": {"httpapi", "cmd/curfew"}, "flow/internal/machine": {"flow"},
	"internal/expr": {"worker", "flow"}, "duration": {"flow"}, "metrics": {"cmd/curfew"},
}

// laterParts returns the packages that are tried for a mutant that the first parts do not find.
func laterParts(m mutant) []string {
	if !m.lua() {
		return dependents[filepath.Dir(m.file)]
	}
	list := slices.Clone(packagesOfLua)
	first := nearest[filepath.Base(filepath.Dir(m.file))]
	for _, pkg := range []string{"flow", "events"} {
		if strings.Contains(filepath.Base(m.file), pkg) {
			first = pkg
		}
	}
	if first != "" {
		list = slices.DeleteFunc(list, func(pkg string) bool { return pkg == first })
		list = slices.Insert(list, 0, first)
	}
	return list
}

// outcome is the result of a run of a test binary.
type outcome struct {
	failed  []string // top-level tests; of the stories, the stories
	running []string // tests that ran when the time was over
	crashed bool     // it ended with an error, and no test had failed
	partly  bool     // the time was over before all tests had run
	said    string
}

func (o outcome) fine() bool { return len(o.failed) == 0 && len(o.running) == 0 && !o.crashed }

var (
	failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	story   = regexp.MustCompile(`(?m)^\s+--- FAIL: TestStories/redis/(\S+)`)
	running = regexp.MustCompile(`(?m)^\t+(Test[^/\s]+)\S* \(`)
)

// outcomeOf reads the output of a run.
func outcomeOf(said string, ended error) outcome {
	o := outcome{said: said}
	for _, match := range failure.FindAllStringSubmatch(said, -1) {
		if match[1] != "TestStories" {
			o.failed = append(o.failed, match[1])
		}
	}
	for _, match := range story.FindAllStringSubmatch(said, -1) {
		o.failed = append(o.failed, stories+"/"+match[1])
	}
	if _, after, over := strings.Cut(said, "panic: test timed out"); over {
		for _, match := range running.FindAllStringSubmatch(after, -1) {
			o.running = append(o.running, match[1])
		}
		slices.Sort(o.running)
		o.running = slices.Compact(o.running)
	}
	o.crashed = ended != nil && len(o.failed)+len(o.running) == 0
	return o
}

// runs returns the argument that runs some tests and no others.
func runs(tests []string) string { return "-test.run=^(" + strings.Join(tests, "|") + ")$" }

// play runs a test binary with all its tests, for at most a time.
func (g *ground) play(binary, pkg string, most time.Duration, args ...string) (outcome, error) {
	own, err := os.MkdirTemp(g.own, "play")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(own)
	ctx, cancel := context.WithTimeout(context.Background(), most+30*time.Second)
	defer cancel()
	test := exec.CommandContext(ctx, binary, append([]string{"-test.v", "-test.timeout", most.String()}, args...)...)
	test.Dir = filepath.Join(g.tree, pkg)
	test.Env = append(os.Environ(), "TMPDIR="+own)
	test.WaitDelay = 5 * time.Second
	said, ended := test.CombinedOutput()
	return outcomeOf(string(said), ended), nil
}

// write plants an edit of the Lua. A zero mutant plants nothing.
func (g *ground) write(m mutant, e textEdit) error {
	if err := os.RemoveAll(g.planted()); err != nil {
		return err
	}
	if err := os.CopyFS(g.planted(), os.DirFS(g.lua())); err != nil || m.file == "" {
		return err
	}
	text, err := os.ReadFile(filepath.Join(g.tree, m.file))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(g.own, m.file), []byte(e.apply(string(text))), 0o644)
}

// model plays the model on the planted Lua, and compares with the trace of the unchanged Lua.
func (g *ground) model() (o outcome, differs bool, err error) {
	binary, err := g.binary("internal/test/model")
	if err != nil {
		return o, false, err
	}
	o, err = g.play(binary, "internal/test/model", 3*limit, append(modelArgs, "-test.run=^TestModel$", "-trace="+filepath.Join(g.own, "trace"))...)
	return o, !o.fine() || !strings.Contains(o.said, "steps are the same"), err
}

// begin runs the stories and the model on the unchanged Lua. They must pass, and the model writes the trace.
func (g *ground) begin() error {
	if err := g.write(mutant{}, textEdit{}); err != nil {
		return err
	}
	stories, err := g.stories()
	if err != nil {
		return err
	}
	model, _, err := g.model()
	if err != nil || !stories.fine() || !model.fine() {
		return errors.Join(err, fmt.Errorf("tests fail without a mutant\n%s\n%s", stories.said, model.said))
	}
	_, calls, _ := strings.Cut(model.said, " steps of the calls ")
	calls, _, _ = strings.Cut(calls, "\n")
	for _, call := range strings.Fields(calls) {
		if err := g.reachable("call/" + call); err != nil {
			return err
		}
	}
	if _, differs, err := g.model(); err != nil || differs || len(g.modelled) == 0 {
		return errors.Join(err, errors.New("the model plays other steps when it is run again with the same seed"))
	}
	return nil
}

var uses = regexp.MustCompile(`(?m)^-- @use ([^\s:]+)`)

// reachable adds a file of the Lua, and all that it uses, to those that the model can reach.
func (g *ground) reachable(name string) error {
	if g.modelled[name] || name == "store/now" { // the model has a clock of its own
		return nil
	}
	text, err := os.ReadFile(filepath.Join(g.lua(), name+".lua"))
	if err != nil {
		return err
	}
	g.modelled[name] = true
	for _, use := range uses.FindAllStringSubmatch(string(text), -1) {
		if err := g.reachable(use[1]); err != nil {
			return err
		}
	}
	return nil
}

func (g *ground) stories() (outcome, error) {
	binary, err := g.binary("queue")
	if err != nil {
		return outcome{}, err
	}
	return g.play(binary, "queue", limit, "-test.run="+storyTests)
}

// tryLua plants a mutant of the Lua and fills in its row: its class, and what finds it.
func (g *ground) tryLua(m mutant, r *result) error {
	text, err := os.ReadFile(filepath.Join(g.tree, m.file))
	if err != nil {
		return err
	}
	if _, err := luaparse.Parse(strings.NewReader(m.edit.apply(string(text))), m.file); err != nil {
		r.class = classInvalid
		return nil
	}
	if err := g.write(m, m.edit); err != nil {
		return err
	}
	told, err := g.stories()
	if err != nil {
		return err
	}
	r.note(stories, append(told.failed, told.running...), told)
	if !g.modelled[strings.TrimSuffix(strings.TrimPrefix(m.file, "lua/"), ".lua")] {
		r.class = classUnreached
		return nil
	}
	played, differs, err := g.model()
	if err != nil {
		return err
	}
	r.note("model", nil, played)
	r.class = classValid
	if !differs {
		r.class = classUnseen
	}
	if differs || len(r.killed) > 0 {
		return nil
	}
	if err := g.write(m, m.trap); err != nil {
		return err
	}
	_, reached, err := g.model()
	if !reached {
		r.class = classUnreached
	}
	return err
}

// skipped leaves out the stories, which have run, and a test that compares the text of the Lua.
const skipped = "-test.skip=^(TestStories|TestANewTextHasANewBuildNumber)$"

// later tries a mutant that is not found yet with one more package.
func (g *ground) later(pkg string, m mutant, r *result) error {
	var binary string
	var err error
	if m.lua() {
		if err = g.write(m, m.edit); err == nil {
			binary, err = g.binary(pkg)
		}
	} else {
		binary, err = g.goBinary(pkg, m, m.edit)
	}
	if err != nil {
		return err
	}
	found, err := g.confirmed(binary, pkg, m, skipped)
	r.note(pkg, found.failed, found)
	return err
}

// confirmed runs some tests of a package on a mutant. On a busy machine a test can fail without it, so those that fail
// run again alone: they must fail again, and pass without the mutant. Tests that ran when the time was over count if
// they need as long alone.
func (g *ground) confirmed(binary, pkg string, m mutant, which string) (outcome, error) {
	args := []string{"-test.short", which}
	o, err := g.play(binary, pkg, limit, args...)
	if err != nil || o.fine() {
		return o, err
	}
	if !o.crashed {
		args = append(args, runs(append(o.failed, o.running...)))
	}
	again, err := g.play(binary, pkg, limit, args...)
	again.partly = len(o.running) > 0
	if err != nil || again.fine() {
		return again, err
	}
	if m.lua() {
		err = g.write(mutant{}, textEdit{})
	} else {
		binary, err = g.goBinary(pkg, m, textEdit{})
	}
	if err != nil {
		return outcome{}, err
	}
	without, err := g.play(binary, pkg, limit, args...)
	if err != nil {
		return outcome{}, err
	}
	if m.lua() {
		err = g.write(m, m.edit)
	}
	own := func(tests []string) []string {
		return slices.DeleteFunc(tests, func(test string) bool {
			return slices.Contains(without.failed, test) || slices.Contains(without.running, test)
		})
	}
	again.failed = append(own(again.failed), own(again.running)...)
	again.running = nil
	again.crashed = again.crashed && !without.crashed
	return again, err
}
