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
		if m, err = Restore(d, stored); err != nil {
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

// describe writes steps: "+a(x=1) +b -c =Succeeded(y=2)".
func describe(s Steps) string {
	var all []string
	for _, c := range s.Create {
		text := "+" + c.Name + values(c.Inputs)
		if !c.Deadline.IsZero() {
			text += "until" + c.Deadline.Format(":05")
		}
		all = append(all, text)
	}
	for _, name := range s.Cancel {
		all = append(all, "-"+name)
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

func TestANodeThatFailsEndsTheDAG(t *testing.T) {
	two := flowOf(`{"name":"a","executor":{"type":"x"}},{"name":"b","executor":{"type":"x"}}`)
	play(t, two, nil, "+a +b", [2]string{"b Failed", "=Failed: node b: Failed"}, [2]string{"a Succeeded", ""})
	play(t, two, nil, "+a +b", [2]string{"a Error", "=Error: node a: Error"})
	play(t, two, nil, "+a +b", [2]string{"a Timeout", "=Failed: node a: Timeout"})
}

// A wrapper that is retried begins with a new child each time, and all attempts have one deadline.
func TestAWrapperIsRetried(t *testing.T) {
	play(t, flowOf(`{"name":"a","template":"again","timeout":"10s","retry":{"limit":2}}`), nil,
		"+a", [2]string{"a Error", "+a__2until:10"}, [2]string{"a__2 Error", "+a__3until:10"}, [2]string{"a__3 Error", "=Error: node a: Error"})
	play(t, flowOf(`{"name":"a","template":"again","retry":{"limit":2}}`), nil, "+a", [2]string{"a Failed", "=Failed: node a: Failed"})
	play(t, flowOf(`{"name":"a","template":"again","retry":{"limit":2,"expression":"tasks.a.phase == 'Failed'"}}`), nil,
		"+a", [2]string{"a Failed", "+a__2"}, [2]string{"a__2 Error", "=Error: node a: Error"})
	play(t, flowOf(`{"name":"a","template":"again","timeout":"1s","retry":{"limit":2}}`), nil, "+a", [2]string{"a Timeout", "=Failed: node a: Timeout"})
}

func TestALeafIsRetriedByTheQueue(t *testing.T) {
	play(t, flowOf(`{"name":"a","executor":{"type":"x"},"retry":{"limit":2}}`), nil, "+a", [2]string{"a Error", "=Error: node a: Error"})
}

func TestAnEchoThatSuspendsWaits(t *testing.T) {
	play(t, flowOf(`{"name":"a","executor":{"type":"echo"},"inputs":{"parameters":[{"name":"suspend","value":true}]}},{"name":"b","executor":{"type":"echo"},"dependencies":["a"]}`), nil,
		"+a(suspend=true)", [2]string{"a Succeeded", "=Succeeded"})
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
