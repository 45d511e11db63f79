package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// play follows a definition. Each step of the script is an end, "child Phase [output=value]", and what must follow it. Between the steps
// the machine is stored and restored.
func play(t *testing.T, text string, inputs map[string]any, begin string, script ...[2]string) {
	t.Helper()
	d, err := plan.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(d, d.Entry, inputs)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000).UTC()
	if got := describe(m.Begin(now)); got != begin {
		t.Fatalf("it begins with %q, want %q", got, begin)
	}
	for _, step := range script {
		stored, err := m.State()
		if err != nil {
			t.Fatal(err)
		}
		if m, err = Restore(d, inputs, stored); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		words := strings.Fields(step[0])
		e := End{Phase: Phase(words[1]), At: now, Outputs: map[string]any{}}
		for _, word := range words[2:] {
			name, value, _ := strings.Cut(word, "=")
			e.Outputs[name] = value
		}
		if got := describe(m.Ended(words[0], e)); got != step[1] {
			t.Fatalf("after %q follows %q, want %q", step[0], got, step[1])
		}
	}
}

// describe writes steps: "+a(x=1) +b =Succeeded(y=2)".
func describe(s Steps) string {
	var all []string
	for _, c := range s.Create {
		text := "+" + c.Name + values(c.Inputs)
		if !c.Deadline.IsZero() {
			text += "until" + c.Deadline.Format(":05")
		}
		all = append(all, text)
	}
	if e := s.End; e != nil {
		all = append(all, "="+string(e.Phase)+values(e.Outputs)+withColon(e.Msg))
	}
	return strings.Join(all, " ")
}

func values(m map[string]any) string {
	if len(m) == 0 {
		return ""
	}
	var all []string
	for name, v := range m {
		all = append(all, fmt.Sprintf("%s=%v", name, v))
	}
	slices.Sort(all)
	return "(" + strings.Join(all, ",") + ")"
}

func flowOf(tasks string) string {
	return `{"spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[` + tasks + `]}},{"name":"again","task":{"template":"inner"}},{"name":"inner","dag":{"tasks":[{"name":"b","executor":{"type":"x"}}]}}]}}`
}

func TestADiamond(t *testing.T) {
	play(t, flowOf(`{"name":"a","executor":{"type":"x"}},
		{"name":"b","executor":{"type":"x"},"dependencies":["a"],"inputs":{"parameters":[{"name":"p","value":"{{ tasks.a.outputs.parameters.q }}"}]}},
		{"name":"c","executor":{"type":"x"},"dependencies":["a"],"continueOn":{"timeout":true}},
		{"name":"d","executor":{"type":"echo"},"dependencies":["b","c"],"inputs":{"parameters":[{"name":"how","value":"c: {{ tasks.c.phase }}"}]}}`), nil,
		"+a", [2]string{"a Succeeded q=7", "+b(p=7) +c"}, [2]string{"c Timeout", ""}, [2]string{"b Succeeded", "=Succeeded(how=c: Timeout)"})
}

// A DAG yields what its template says, or what its last nodes yield.
func TestTheOutputsOfADAG(t *testing.T) {
	two := `"dag":{"tasks":[{"name":"a","executor":{"type":"x"}},{"name":"b","executor":{"type":"x"}}]}`
	for outputs, want := range map[string]string{
		``: "=Succeeded(a=map[v:1],b=map[v:2])",
		`,"outputs":{"parameters":[{"name":"sum","value":"{{ tasks.a.outputs.parameters.v }}+{{ tasks.b.outputs.parameters.v }}"}]}`: "=Succeeded(sum=1+2)",
		`,"outputs":{"parameters":[{"name":"sum","value":"{{ int(tasks.a.phase) }}"}]}`:                                              `=Error: the output sum: "int(tasks.a.phase)" cannot be evaluated: at character 1: invalid operation: int(Succeeded)`,
	} {
		play(t, `{"spec":{"entrypoint":"main","templates":[{"name":"main",`+two+outputs+`}]}}`, nil, "+a +b", [2]string{"b Succeeded v=2", ""}, [2]string{"a Succeeded v=1", want})
	}
}

func TestANodeThatFailsEndsTheDAG(t *testing.T) {
	two := flowOf(`{"name":"a","executor":{"type":"x"}},{"name":"b","executor":{"type":"x"}}`)
	play(t, two, nil, "+a +b", [2]string{"b Failed", "=Failed: node b: Failed"}, [2]string{"a Succeeded", ""})
	play(t, two, nil, "+a +b", [2]string{"a Error", "=Error: node a: Error"})
	play(t, two, nil, "+a +b", [2]string{"a Timeout", "=Failed: node a: Timeout"})
}

// A wait has the name of its signal, or that of its node if it waits for none.
func TestTheNameOfAWait(t *testing.T) {
	play(t, flowOf(`{"name":"a","executor":{"type":"wait"}},{"name":"b","executor":{"type":"wait","signal":"go"}},{"name":"c","executor":{"type":"wait","signal":"go"}}`), nil,
		"+a +s-go +s-go__2")
}

// A wrapper that is retried begins with a new child each time, and all attempts have one deadline.
func TestAWrapperIsRetried(t *testing.T) {
	play(t, flowOf(`{"name":"a","template":"again","timeout":"10s","retry":{"limit":2}}`), nil,
		"+a", [2]string{"a Error", "+a__r2until:10"}, [2]string{"a__r2 Error", "+a__r3until:10"}, [2]string{"a__r3 Error", "=Error: node a: Error"})
	play(t, flowOf(`{"name":"a","template":"again","retry":{"limit":2}}`), nil, "+a", [2]string{"a Failed", "=Failed: node a: Failed"})
	play(t, flowOf(`{"name":"a","template":"again","retry":{"limit":2,"expression":"tasks.a.phase == 'Failed'"}}`), nil,
		"+a", [2]string{"a Failed", "+a__r2"}, [2]string{"a__r2 Error", "=Error: node a: Error"})
	play(t, flowOf(`{"name":"a","template":"again","timeout":"1s","retry":{"limit":2}}`), nil, "+a", [2]string{"a Timeout", "=Failed: node a: Timeout"})
}

func TestALeafIsRetriedByTheQueue(t *testing.T) {
	play(t, flowOf(`{"name":"a","executor":{"type":"x"},"retry":{"limit":2}}`), nil, "+a", [2]string{"a Error", "=Error: node a: Error"})
}

func TestAnEchoThatSuspendsWaits(t *testing.T) {
	play(t, flowOf(`{"name":"a","executor":{"type":"echo"},"inputs":{"parameters":[{"name":"suspend","value":true}]}},{"name":"b","executor":{"type":"echo"},"dependencies":["a"]}`), nil,
		"+a(suspend=true)", [2]string{"a Succeeded", "=Succeeded"})
}

// A leaf with which a run begins has the inputs of the run, as a leaf that a DAG calls has those of its node.
func TestALeafWithWhichARunBeginsHasItsInputs(t *testing.T) {
	leaf := func(executor, inputs string) string {
		return `{"spec":{"entrypoint":"main","templates":[{"name":"main","executor":` + executor + `,"inputs":{"parameters":[` + inputs + `]}}]}}`
	}
	both := `{"name":"x"},{"name":"y","value":"{{ inputs.parameters.x + 1 }}"}`
	play(t, leaf(`{"type":"x"}`, both), map[string]any{"x": 1}, "+main(x=1,y=2)", [2]string{"main Succeeded v=1", "=Succeeded(v=1)"})
	play(t, leaf(`{"type":"echo"}`, both), map[string]any{"x": 1, "y": 3}, "=Succeeded(x=1,y=3)")
	play(t, leaf(`{"type":"echo"}`, `{"name":"suspend","value":true}`), nil, "+main(suspend=true)", [2]string{"main Succeeded v=1", "=Succeeded(v=1)"})
	play(t, leaf(`{"type":"workflow_call","workflow":"other"}`, both), map[string]any{"x": 1}, "+main(x=1,y=2)", [2]string{"main Succeeded", "=Succeeded"})
	play(t, leaf(`{"type":"set","values":{"z":"{{ inputs.parameters.y }}"}}`, both), map[string]any{"x": 1}, "=Succeeded(z=2)")
}

// loopOf returns a definition whose only template is a loop.
func loopOf(loop string) string {
	return `{"spec":{"entrypoint":"main","templates":[{"name":"main","inputs":{"parameters":[{"name":"list","value":[1,2,3]}]},"loop":` + loop + `}]}}`
}

func TestALoopOverItems(t *testing.T) {
	body := `"task":{"executor":{"type":"x"},"inputs":{"parameters":[{"name":"i","value":"{{ index }}:{{ item }}"}]}}`
	play(t, loopOf(`{"items":"{{ inputs.parameters.list }}",`+body+`}`), nil, "+round__0(i=0:1)",
		[2]string{"round__0 Succeeded v=a", "+round__1(i=1:2)"}, [2]string{"round__1 Succeeded", "+round__2(i=2:3)"},
		[2]string{"round__2 Succeeded v=c", "=Succeeded(results=[map[v:a] map[] map[v:c]])"})
	play(t, loopOf(`{"items":"{{ inputs.parameters.list }}","parallel":2,`+body+`}`), nil, "+round__0(i=0:1) +round__1(i=1:2)",
		[2]string{"round__1 Succeeded v=b", "+round__2(i=2:3)"}, [2]string{"round__2 Failed", "=Failed: round 2: Failed"}, [2]string{"round__0 Succeeded", ""})
	play(t, loopOf(`{"items":[],`+body+`}`), nil, "=Succeeded(results=[])")
	play(t, loopOf(`{"items":7,`+body+`}`), nil, "=Error: the items of the loop must be a list")
}

func TestALoopUntilAnExpressionHolds(t *testing.T) {
	loop := loopOf(`{"until":"last.outputs.parameters.done == 'yes'","limit":3,"task":{"executor":{"type":"x"},"inputs":{"parameters":[{"name":"from","value":"{{ last.outputs.parameters.next }}"}]},"continueOn":{"error":true}}}`)
	play(t, loop, nil, "+round__0(from=<nil>)", [2]string{"round__0 Succeeded next=5", "+round__1(from=5)"}, [2]string{"round__1 Succeeded done=yes", "=Succeeded(done=yes)"})
	play(t, loop, nil, "+round__0(from=<nil>)", [2]string{"round__0 Error", "+round__1(from=<nil>)"}, [2]string{"round__1 Succeeded", "+round__2(from=<nil>)"},
		[2]string{"round__2 Succeeded", "=Failed: the loop has made 3 rounds, its limit, and last.outputs.parameters.done == 'yes' does not hold"})
}

// graphOf returns a definition of a graph: a fans out to b, whose tokens meet before c.
func graphOf(fanOut, synchronization, more string) string {
	return `{"nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x"},{"id":"c","action_id":"x","inputs":{"parameters":[{"name":"r","value":"{{ state.results }}"}]}}],
		"actions":[{"id":"x","kind":"x","execution":{"timeout_ms":2000}}],
		"transitions":[{"id":"t","from":"a","to":"b","fan_out":` + fanOut + `},{"from":"b","to":"c","synchronization":{"sibling_group":"t",` + synchronization + `}}` + more + `],
		"output":{"results":"{{ state.results }}"}}`
}

func TestTokensMeet(t *testing.T) {
	play(t, graphOf(`{"spawn_count":2}`, `"strategy":"all"`, ``), nil, "+a", [2]string{"a Succeeded", "+b__b0 +b__b1"},
		[2]string{"b__b1 Succeeded v=3", ""}, [2]string{"b__b0 Succeeded v=2", "+c(r=[map[v:2] map[v:3]])"}, [2]string{"c Succeeded", "=Succeeded(results=[map[v:2] map[v:3]])"})
	play(t, graphOf(`{"items":"{{ nodes.a.outputs.parameters.list }}"}`, `"strategy":"all"`, ``), nil, "+a", [2]string{"a Succeeded list=7", "=Error: the items of the transition t must be a list"})
	play(t, graphOf(`{"items":[]}`, `"strategy":"all"`, ``), nil, "+a", [2]string{"a Succeeded", "+c(r=[])"}, [2]string{"c Succeeded", "=Succeeded(results=[])"})
	any := graphOf(`{"spawn_count":3}`, `"strategy":"any","merge":{"strategy":"last_wins","source":"_branch.output.v"}`, ``)
	play(t, any, nil, "+a", [2]string{"a Succeeded", "+b__b0 +b__b1 +b__b2"}, [2]string{"b__b1 Failed", ""}, [2]string{"b__b2 Succeeded v=4", "+c(r=4)"},
		[2]string{"b__b0 Succeeded v=2", ""}, [2]string{"c Succeeded", "=Succeeded(results=4)"})
	play(t, any, nil, "+a", [2]string{"a Succeeded", "+b__b0 +b__b1 +b__b2"}, [2]string{"b__b1 Failed", ""}, [2]string{"b__b2 Error", ""},
		[2]string{"b__b0 Timeout", "=Failed: All tasks failed: node b: Failed"})
	two := graphOf(`{"spawn_count":3}`, `"strategy":{"m_of_n":2},"merge":{"strategy":"keyed_by_branch","source":"_branch.output.v"}`, ``)
	play(t, two, nil, "+a", [2]string{"a Succeeded", "+b__b0 +b__b1 +b__b2"}, [2]string{"b__b2 Succeeded v=4", ""}, [2]string{"b__b1 Succeeded v=3", "+c(r=map[1:3 2:4])"},
		[2]string{"c Succeeded", "=Succeeded(results=map[1:3 2:4])"})
	play(t, two, nil, "+a", [2]string{"a Succeeded", "+b__b0 +b__b1 +b__b2"}, [2]string{"b__b2 Succeeded v=4", ""}, [2]string{"b__b1 Error", ""},
		[2]string{"b__b0 Error", "=Failed: 2 tasks must complete, and at most 1 can: node b: Error"})
}

// The limit of a meeting counts from the first arrival. It is computed if the definition gives none.
func TestTheLimitOfAMeeting(t *testing.T) {
	begun := time.UnixMilli(1_800_000_000_000).UTC()
	for _, test := range []struct {
		sync string
		want time.Duration
		then string
	}{
		{`"strategy":"all"`, 6 * time.Second, "=Failed: Synchronization timeout exceeded"}, // 2 s × 2 × 1.5
		{`"strategy":"all","timeout_ms":500,"on_timeout":"proceed_with_available"`, 500 * time.Millisecond, "+c(r=[map[v:2]])"},
		{`"strategy":"all","timeout":"1h"`, time.Hour, "=Failed: Synchronization timeout exceeded"},
		{`"strategy":"all","timeout":null`, 0, ""},
	} {
		d, err := plan.Read([]byte(graphOf(`{"spawn_count":2}`, test.sync, ``)))
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(d, d.Entry, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.Begin(begun)
		m.Ended("a", End{Phase: Succeeded, At: begun})
		if _, until := m.Limit(); !until.IsZero() {
			t.Errorf("%s: it has a limit before the first arrival", test.sync)
		}
		arrived := begun.Add(10 * time.Second)
		m.Ended("b__b0", End{Phase: Succeeded, At: arrived, Outputs: map[string]any{"v": 2}})
		from, until := m.Limit()
		if test.want == 0 {
			if !until.IsZero() {
				t.Errorf("%s: it has a limit", test.sync)
			}
			continue
		}
		if !from.Equal(arrived) || until.Sub(from) != test.want {
			t.Errorf("%s: the limit is %v from %v, want %v from %v", test.sync, until.Sub(from), from, test.want, arrived)
		}
		if got := describe(m.Passed()); got != test.then {
			t.Errorf("%s: then %q, want %q", test.sync, got, test.then)
		}
	}
}

// A graph can go in circles, and a condition ends that.
func TestACircle(t *testing.T) {
	circle := `{"initial":"a","nodes":[{"id":"a","action_id":"x"},{"id":"n","action_id":"count"}],
		"actions":[{"id":"x","kind":"x"},{"id":"count","kind":"update_context","implementation":{"values":{"state.n":"{{ (state.n ?? 0) + 1 }}"}}}],
		"transitions":[{"from":"a","to":"n"},{"from":"n","to":"a","condition":"state.n < 2"}]}`
	play(t, circle, nil, "+a", [2]string{"a Succeeded", "+a__v2"}, [2]string{"a__v2 Succeeded", "=Succeeded(n=2)"})
}

// Fan-outs within fan-outs meet one after the other.
func TestNestedFanOuts(t *testing.T) {
	nested := `{"nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x"},{"id":"c","action_id":"x"},{"id":"d","action_id":"x"},{"id":"e","action_id":"x"}],"actions":[{"id":"x","kind":"x"}],
		"transitions":[{"id":"o","from":"a","to":"b","fan_out":{"spawn_count":2}},{"id":"i","from":"b","to":"c","fan_out":{"spawn_count":2}},
			{"from":"c","to":"d","synchronization":{"strategy":"all","sibling_group":"i","merge":{"target":"state.inner"}}},
			{"from":"d","to":"e","synchronization":{"strategy":"all","sibling_group":"o","merge":{"source":"_branch.output.v"}}}]}`
	play(t, nested, nil, "+a", [2]string{"a Succeeded", "+b__b0 +b__b1"}, [2]string{"b__b1 Succeeded", "+c__b1-0 +c__b1-1"}, [2]string{"c__b1-1 Succeeded", ""},
		[2]string{"b__b0 Succeeded", "+c__b0-0 +c__b0-1"}, [2]string{"c__b1-0 Succeeded", "+d__b1"}, [2]string{"d__b1 Succeeded v=second", ""}, [2]string{"c__b0-0 Succeeded", ""},
		[2]string{"c__b0-1 Succeeded", "+d__b0"}, [2]string{"d__b0 Succeeded v=first", "+e"}, [2]string{"e Succeeded", "=Succeeded(inner=[map[] map[]],results=[first second])"})
}

// A run that goes round without a task between is ended by its bound, and the depth of the stack does not grow.
func TestABoundOfNodes(t *testing.T) {
	play(t, `{"initial":"a","max_nodes":50000,"nodes":[{"id":"a","action_id":"x"}],"actions":[{"id":"x","kind":"update_context","implementation":{"values":{}}}],
		"transitions":[{"from":"a","to":"a"}]}`, nil, "=Error: the run has made 50000 nodes, its limit")
}

// An end after the limit of a meeting comes after it. A limit that ends the run ends the machine too.
func TestALimitThatHadPassedComesFirst(t *testing.T) {
	for onTimeout, want := range map[string]string{"fail": "=Failed: Synchronization timeout exceeded", "proceed_with_available": "+c(r=[<nil>])"} {
		d, err := plan.Read([]byte(graphOf(`{"spawn_count":2}`, `"strategy":"all","timeout_ms":500,"on_timeout":"`+onTimeout+`"`, ``)))
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(d, d.Entry, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := time.UnixMilli(1_800_000_000_000).UTC()
		m.Begin(at)
		m.Follow("a", End{Phase: Succeeded, At: at})
		m.Follow("b__b0", End{Phase: Succeeded, At: at})
		if all := m.Meetings(); len(all) != 1 || !slices.Equal(all[0].Arrived, []string{"b/b0"}) || !slices.Equal(all[0].Missing, []string{"b/b1"}) || all[0].To != "c" {
			t.Errorf("the meetings are %+v", all)
		}
		if got := describe(m.PassedBefore(at.Add(500 * time.Millisecond))); got != "" {
			t.Errorf("at its limit a meeting is over: %s", got)
		}
		if got := describe(m.Follow("b__b1", End{Phase: Succeeded, At: at.Add(time.Second)})); got != want {
			t.Errorf("%s: then %q, want %q", onTimeout, got, want)
		}
	}
}
