package plan

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/size"
)

// beyondSchema matches the faults that no schema of one value can find: those that compare values, or compile expressions.
var beyondSchema = regexp.MustCompile(`^at character |^the expression |\{\{ without|^two (parameters|templates|actions) have |, and the template has the name |` +
	`^there is no action |^the action .* has no version|^least is longer than most|^must be from 1ms to 10 years|is finer than 1 ms|is longer than 106751d|^is within |^update_context writes|^cannot be the time of a sleep|^must be an address|must yield true or false|deep within each other`)

// shapeFaults returns the faults of a definition that a schema can find.
func shapeFaults(t *testing.T, text []byte) (faults []string) {
	t.Helper()
	file, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r := newReader()
	r.definition(file)
	for _, placed := range r.found {
		f := placed.fault
		if !beyondSchema.MatchString(f.Text) {
			faults = append(faults, f.String())
		}
	}
	return faults
}

// definitions returns all definitions of the tests, good and bad, as decoded JSON.
func definitions(t *testing.T) (all []map[string]any) {
	t.Helper()
	texts := []string{everyField, everyGraphField}
	for _, test := range faultyDefinitions {
		texts = append(texts, test.text)
	}
	files, err := filepath.Glob("../../../internal/test/requirements/testdata/flows/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("there are %d files with definitions, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "\n-- ") {
			if definition, is := strings.CutPrefix(part, "flow\n"); is {
				texts = append(texts, definition)
			}
		}
	}
	for _, text := range texts {
		if tree, err := parse([]byte(text)); err == nil {
			if object, is := tree.plain().(map[string]any); is {
				all = append(all, again(object))
			}
		}
	}
	return all
}

// again returns a value as JSON decodes it, in a copy.
func again[T any](value T) (copied T) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &copied)
	}
	if err != nil {
		panic(err)
	}
	return copied
}

// everyField has every field of the spelling with templates.
const everyField = `{"id":"all","version":"1","description":"d","on_timeout":"fail","max_nodes":10,"inputs":{"parameters":[{"name":"n","value":1}]},
	"hooks":{"on_success":{"kind":"k"},"on_failure":{"kind":"k","queue":"q"},"on_timeout":{"kind":"k"},"on_cancel":{"kind":"k"}},
	"spec":{"entrypoint":"main","timeout":"2h","templates":[
	{"name":"main","outputs":{"parameters":[{"name":"o","value":"{{ tasks.a.phase }}"}]},"dag":{"tasks":[
		{"name":"a","template":"leaf","dependencies":["b"],"continueOn":{"failed":true,"error":true,"timeout":true,"cancelled":true},"inputs":{"parameters":[{"name":"p","value":null}]}},
		{"name":"b","executor":{"type":"http_request","url":"http://x","method":"PUT","headers":{"a":"b"},"body":[1],"queue":"q","priority":3},"attempt_timeout":"preset http_request","queue_timeout":null,"retry":{"limit":2,"backoff":{"delay":"1s","max":"9s","exponential":true}},"on_timeout":"retry"},
		{"name":"c","executor":{"type":"work"},"timeout":"adaptive","adaptive":{"least":"1s","most":"1m","factor":2.5}},
		{"name":"d","executor":{"type":"workflow_call","workflow":"other","version":"3"}},
		{"name":"e","executor":{"type":"set","values":{"x":1}},"timeout_ms":5},
		{"name":"f","executor":{"type":"sleep","duration":"1s"}},{"name":"g","executor":{"type":"wait","signal":"go"}},{"name":"h","template":"again"},{"name":"i","template":"wrapper"}]}},
	{"loop":{"name":"again","until":"last.phase == 'Succeeded'","limit":3,"task":{"template":"leaf","timeout":null}}},
	{"name":"each","loop":{"items":[1,2],"parallel":2,"task":{"executor":{"type":"work"},"retry":{"limit":1,"expression":"tasks.round.code == 1"}}}},
	{"name":"solo","task":{"executor":{"type":"echo"}}},{"name":"wrapper","task":{"template":"each","inputs":{"parameters":[]}}},
	{"name":"leaf","executor":{"type":"work"},"timeout":"1m","queue_timeout":"1d12h","attempt_timeout":null}]}}`

// everyGraphField is the same for graphs.
const everyGraphField = `{"id":"graph","timeout_ms":1000,"initial":"a","output":{"x":1},
	"nodes":[{"id":"a","action_id":"x","action_version":"2","inputs":{"parameters":[{"name":"p","value":1}]},"timeout":"1m","attempt_timeout":"10s","queue_timeout":"5s","on_timeout":"retry","retry":{"limit":1},"continueOn":{"error":true}},
		{"id":"b","action_id":"child","timeout_ms":null},{"id":"c","action_id":"http","timeout":"adaptive","adaptive":{"least":"1s","most":"2s"}},{"id":"d","action_id":"set"},{"id":"e","action_id":"sleep"},{"id":"f","action_id":"wait"},{"id":"g","action_id":"echo"}],
	"actions":[{"id":"x","version":"2","kind":"llm_call","implementation":{"queue":"q","priority":1},"execution":{"timeout_ms":5,"on_timeout":"fail"},"retry":{"limit":3,"backoff":{"delay":"1s"}}},
		{"id":"child","kind":"workflow_call","implementation":{"workflow_def_id":"other","workflow_def_version":"1"}},
		{"id":"http","kind":"http_request","implementation":{"url":"http://x","method":"GET","headers":{},"body":"b"}},
		{"id":"set","kind":"update_context","implementation":{"values":{"state.x":1}}},{"id":"sleep","kind":"sleep","implementation":{"duration":"1s"}},{"id":"wait","kind":"wait","implementation":{"signal":"go"}},{"id":"echo","kind":"echo"}],
	"transitions":[{"id":"fan","from":"a","to":"b","condition":"true","fan_out":{"spawn_count":3}},{"id":"each","from":"a","to":"c","fan_out":{"items":[1,2]}},
		{"from":"b","to":"d","synchronization":{"strategy":{"m_of_n":2},"sibling_group":"fan","timeout":"1m","on_timeout":"proceed_with_available","merge":{"source":"_branch.output.x","target":"state.y","strategy":"last_wins"}}},
		{"from":"c","to":"e","synchronization":{"strategy":"any","sibling_group":"each","timeout_ms":null,"on_timeout":"fail","merge":{"strategy":"append"}}},{"from":"e","to":"f"},{"from":"f","to":"g"}]}`

func TestDefinitionsWithEveryFieldAreGood(t *testing.T) {
	used := map[string]bool{}
	for _, text := range []string{everyField, everyGraphField} {
		if _, err := Read([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(text, -1) {
			used[name[1]] = true
		}
	}
	for shape, fields := range shapes {
		for _, f := range fields {
			if !used[f.Name] {
				t.Errorf("no definition has the field %s of %s", f.Name, shape)
			}
		}
	}
}

// Each field of both definitions is left out, and each field that its object could have is added.
func TestTheSchemaSaysOfEachFieldWhatTheReaderSays(t *testing.T) {
	v, s := newValidator()
	m := &mutator{}
	var both [2]map[string]any
	for i, text := range []string{everyField, everyGraphField} {
		if err := json.Unmarshal([]byte(text), &both[i]); err != nil {
			t.Fatal(err)
		}
		m.collect(again(both[i]))
	}
	values := map[string]any{}
	for _, member := range m.members {
		values[member.name] = member.value
	}
	good, bad := 0, 0
	count := func(d map[string]any) {
		if compare(t, v, s, d) {
			good++
		} else {
			bad++
		}
	}
	for _, d := range both {
		for _, o := range objectsOf(d) {
			was := maps.Clone(o)
			for name := range was {
				delete(o, name)
				count(d)
				o[name] = was[name]
			}
			for name := range couldHave(was) {
				if _, there := was[name]; !there {
					o[name] = again(values[name])
					count(d)
					delete(o, name)
				}
			}
		}
	}
	if good < 100 || bad < 100 {
		t.Errorf("%d changed definitions are good and %d are not", good, bad)
	}
}

// couldHave returns the fields of all shapes that an object could have.
func couldHave(o map[string]any) map[string]bool {
	all := map[string]bool{}
	for shape, fields := range shapes {
		fits := len(o) > 0
		for name := range o {
			fits = fits && hasField(shape, name)
		}
		for _, f := range fields {
			all[f.Name] = all[f.Name] || fits
		}
	}
	maps.DeleteFunc(all, func(_ string, could bool) bool { return !could })
	return all
}

// The schema refuses a definition exactly if the reader finds a fault that a schema can find.
func compare(t *testing.T, v *validator, s any, definition map[string]any) (good bool) {
	t.Helper()
	text, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	faults := shapeFaults(t, text)
	why := v.wrong(s, again(any(definition)), "")
	if (why == "") != (len(faults) == 0) {
		t.Errorf("%s\nthe schema says %q, and the reader %q", text, why, faults)
	}
	return why == ""
}

func TestTheSchemaSaysOfDefinitionsWhatTheReaderSays(t *testing.T) {
	v, s := newValidator()
	good, bad := 0, 0
	for _, definition := range definitions(t) {
		if compare(t, v, s, definition) {
			good++
		} else {
			bad++
		}
	}
	if good < 30 || bad < 5 {
		t.Errorf("%d definitions have a good shape, and %d have not", good, bad)
	}
}

// Random changes of good definitions: fields that are left out, renamed, of another type, and fields of other objects.
func TestTheSchemaSaysOfChangedDefinitionsWhatTheReaderSays(t *testing.T) {
	v, s := newValidator()
	seed := size.Seed()
	m := &mutator{rand.New(rand.NewPCG(seed, 0)), nil}
	var good []map[string]any
	for _, d := range definitions(t) {
		if v.fits(s, any(d)) {
			good = append(good, d)
			m.collect(d)
		}
	}
	n := [2]int{}
	changes := size.Times(2000, 3000, 50_000)
	for range changes {
		d := again(good[m.IntN(len(good))])
		for range 1 + m.IntN(2) {
			m.change(d)
		}
		if compare(t, v, s, d) {
			n[0]++
		} else {
			n[1]++
		}
		if t.Failed() {
			t.Fatalf("the seed is %d", seed)
		}
	}
	if min(n[0], n[1]) < changes/20 {
		t.Errorf("of the changed definitions %d are good and %d are not", n[0], n[1])
	}
}

// mutator changes definitions.
type mutator struct {
	*rand.Rand
	members []pair // of all definitions
}

type pair struct {
	name  string
	value any
}

// collect notes all members of a value.
func (m *mutator) collect(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			m.members = append(m.members, pair{name, value[name]})
			m.collect(value[name])
		}
	case []any:
		for _, item := range value {
			m.collect(item)
		}
	}
}

// change makes one change somewhere in an object.
func (m *mutator) change(d map[string]any) {
	objects := objectsOf(d)
	o := objects[m.IntN(len(objects))]
	if len(o) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(o))
	name := names[m.IntN(len(names))]
	switch m.IntN(6) {
	case 0:
		delete(o, name)
	case 1:
		o[name+"x"] = o[name]
		delete(o, name)
	case 2:
		o[name] = m.odd()
	case 3:
		other := m.members[m.IntN(len(m.members))]
		o[other.name] = again(other.value)
	case 4:
		shape := slices.Sorted(maps.Keys(shapes))[m.IntN(len(shapes))]
		o[shapes[shape][m.IntN(len(shapes[shape]))].Name] = o[name]
	case 5:
		if list, is := o[name].([]any); is && len(list) > 0 {
			o[name] = append(list, list[0])
		} else {
			o[name] = again(m.members[m.IntN(len(m.members))].value)
		}
	}
}

// odd returns a value of some type.
func (m *mutator) odd() any {
	all := []any{nil, true, -1, 0, 1, 2.5, 5000, 1e15, "", "x", "a b", "s-x", "a__b", "10s", "1.5h", "10", "-3s", "adaptive", "preset llm_call", "preset nothing",
		"fail", "retry", "any", "state.x", "_branch.output", strings.Repeat("n", 61), strings.Repeat("n", 5000), []any{}, []any{"a", "a"}, []any{1}, map[string]any{}, map[string]any{"m_of_n": 2},
		"echo", "set", "sleep", "wait", "http_request", "workflow_call", "update_context", "{{ inputs.parameters.n }}"}
	return all[m.IntN(len(all))]
}

// objectsOf returns all objects in a value, but not those in values with expressions.
func objectsOf(value any) (all []map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		all = append(all, value)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if !slices.Contains([]string{"value", "values", "headers", "body", "output"}, name) {
				all = append(all, objectsOf(value[name])...)
			}
		}
	case []any:
		for _, item := range value {
			all = append(all, objectsOf(item)...)
		}
	}
	return all
}

// Each field of a rule is a field of its object, and each type is known.
func TestRulesNameFields(t *testing.T) {
	for shape, rule := range rules {
		all := rule.needs + " " + rule.one
		for _, pairs := range []map[string]string{rule.with, rule.beside} {
			for name, others := range pairs {
				all += " " + name + " " + others
			}
		}
		for _, name := range strings.Fields(all) {
			if !hasField(shape, name) {
				t.Errorf("%s has no field %s", shape, name)
			}
		}
	}
}
