package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// graphFrom writes a graph. A node is "NAME ACTION [INPUT=EXPRESSION]", and the actions are x, a task, echo, and what more adds.
func graphFrom(nodes []string, actions, transitions, output string) string {
	var all []string
	for _, n := range nodes {
		words := strings.SplitN(n, " ", 3)
		inputs := ""
		if len(words) == 3 {
			name, value, _ := strings.Cut(words[2], "=")
			inputs = fmt.Sprintf(`,"inputs":{"parameters":[{"name":%q,"value":%q}]}`, name, "{{ "+value+" }}")
		}
		all = append(all, fmt.Sprintf(`{"id":%q,"action_id":%q%s}`, words[0], words[1], inputs))
	}
	return `{"nodes":[` + strings.Join(all, ",") + `],"actions":[{"id":"x","kind":"x"},{"id":"echo","kind":"echo"}` + actions + `],"transitions":[` + transitions + `]` + output + `}`
}

// fetchesAndPays is a branch of three nodes. The third one reads the first.
func fetchesAndPays() string {
	return graphFrom([]string{"plan x", "fetch x", "check x", "pay x doc=nodes.fetch?.outputs.parameters.doc", "end x last=nodes.fetch.outputs.parameters.doc"}, "",
		`{"id":"f","from":"plan","to":"fetch","fan_out":{"spawn_count":2}},{"from":"fetch","to":"check"},{"from":"check","to":"pay"},
		{"from":"pay","to":"end","synchronization":{"strategy":"all","sibling_group":"f","merge":{"source":"_branch.output.v"}}}`, ``)
}

func TestABranchReadsItsOwnNodes(t *testing.T) {
	play(t, fetchesAndPays(), nil, "+plan", [2]string{"plan Succeeded", "+fetch__b0 +fetch__b1"},
		[2]string{"fetch__b0 Succeeded doc=first", "+check__b0"}, [2]string{"fetch__b1 Succeeded doc=second", "+check__b1"},
		[2]string{"check__b0 Succeeded", "+pay__b0(doc=first)"}, [2]string{"check__b1 Succeeded", "+pay__b1(doc=second)"},
		[2]string{"pay__b0 Succeeded", ""}, [2]string{"pay__b1 Succeeded", "+end(last=second)"}, [2]string{"end Succeeded", "=Succeeded(results=[])"})
}

// What a branch has not done itself is that of the branch around it, and never that of a sibling. Branches of fan-outs that never meet leave
// their ends to what is around them when all have ended.
func TestABranchReadsOutwards(t *testing.T) {
	nested := graphFrom([]string{"a x", "b x", "c x v=nodes.b?.outputs.parameters.v", "d x v=(nodes.a.outputs.parameters.v) + (nodes.c?.outputs.parameters.v ?? '-')", "e x v=nodes.d?.outputs.parameters.v", "z x v=nodes.e?.outputs.parameters.v"}, "",
		`{"id":"o","from":"a","to":"b","fan_out":{"spawn_count":2}},{"from":"b","to":"c","condition":"_branch.index == 0"},{"from":"b","to":"d","condition":"_branch.index == 1"},
		{"id":"i","from":"c","to":"d","fan_out":{"spawn_count":2}},{"from":"d","to":"e","synchronization":{"strategy":"all","sibling_group":"o","merge":{"source":"_branch.output.v"}}},
		{"id":"n","from":"e","to":"z","fan_out":{"spawn_count":1}}`, `,"output":{"e":"{{ nodes.e.outputs.parameters.v }}","z":"{{ nodes.z?.outputs.parameters.v }}"}`)
	play(t, nested, nil, "+a", [2]string{"a Succeeded v=A", "+b__b0 +b__b1"}, [2]string{"b__b0 Succeeded v=B", "+c__b0(v=B)"}, [2]string{"c__b0 Succeeded v=C", "+d__b0-0(v=AC) +d__b0-1(v=AC)"},
		[2]string{"b__b1 Succeeded v=B2", "+d__b1(v=A-)"}, [2]string{"d__b0-1 Succeeded v=1", ""}, [2]string{"d__b1 Succeeded v=2", ""}, [2]string{"d__b0-0 Succeeded v=3", "+e(v=3)"},
		[2]string{"e Succeeded v=E", "+z__b2_0(v=E)"}, [2]string{"z__b2_0 Succeeded v=Z", "=Succeeded(e=E,z=Z)"})
}

// The state has only the ends that a token can still read: none of a branch whose token has arrived, and none that nothing reads.
func TestTheStateHasOnlyEndsThatCanBeRead(t *testing.T) {
	d, err := plan.Read([]byte(fetchesAndPays()))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(d, d.Entry, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := func() string {
		text, err := m.State()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	end := func(child, doc string) {
		m.Ended(child, End{Phase: Succeeded, At: time.UnixMilli(1), Outputs: map[string]any{"doc": doc}})
	}
	m.Begin(time.UnixMilli(1))
	end("plan", "unread")
	end("fetch__b0", "first")
	end("fetch__b1", "second")
	end("check__b0", "unread")
	if text := stored(); strings.Contains(text, "unread") || !strings.Contains(text, `"doc":"first"`) || !strings.Contains(text, "second") {
		t.Errorf("the state is %s", text)
	}
	end("pay__b0", "paid")
	if text := stored(); strings.Contains(text, `"doc":"first"`) || !strings.Contains(text, "second") {
		t.Errorf("a token has arrived, and the state is %s", text)
	}
}

// What is read only behind the synchronization is kept once, and not for each branch.
func TestTheStateHasOneEndOfWhatIsReadBehind(t *testing.T) {
	d, err := plan.Read([]byte(graphFrom([]string{"a x", "b x", "c x", "z x v=nodes.b.outputs.parameters.v"}, "",
		`{"id":"f","from":"a","to":"b","fan_out":{"spawn_count":2}},{"from":"b","to":"c"},{"from":"c","to":"z","synchronization":{"strategy":"all","sibling_group":"f"}}`, ``)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(d, d.Entry, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Begin(time.UnixMilli(1))
	for _, child := range []string{"a", "b__b0", "b__b1"} {
		m.Ended(child, End{Phase: Succeeded, At: time.UnixMilli(1), Outputs: map[string]any{"v": "of " + child}})
	}
	text, err := m.State()
	if err != nil || strings.Contains(string(text), "of a") || strings.Contains(string(text), "of b__b0") || strings.Count(string(text), "of b__b1") != 1 {
		t.Errorf("the state is %s, %v", text, err)
	}
}

// Tokens that come too late execute what they have begun, and change nothing more.
func TestLateTokensChangeNothing(t *testing.T) {
	up := `,{"id":"up","kind":"update_context","implementation":{"values":{"state.who":"{{ _branch.index }}"}}}`
	late := func(condition, sync string) string {
		return graphFrom([]string{"s x", "a x", "u up", "m x", "tail x who=state.who"}, up,
			`{"id":"f","from":"s","to":"a","fan_out":{"spawn_count":2}},{"from":"a","to":"u"`+condition+`},{"from":"u","to":"m","synchronization":{`+sync+`,"sibling_group":"f"}},{"from":"m","to":"tail"}`,
			`,"output":{"who":"{{ state.who }}"}`)
	}
	for _, condition := range []string{``, `,"condition":"_branch.index == 0 or state.nothing > 2"`} {
		play(t, late(condition, `"strategy":"any"`), nil, "+s", [2]string{"s Succeeded", "+a__b0 +a__b1"}, [2]string{"a__b0 Succeeded", "+m"},
			[2]string{"a__b1 Succeeded", ""}, [2]string{"m Succeeded", "+tail(who=0)"}, [2]string{"tail Succeeded", "=Succeeded(who=0)"})
	}
	play(t, late(``, `"strategy":"any"`), nil, "+s", [2]string{"s Succeeded", "+a__b0 +a__b1"}, [2]string{"a__b0 Succeeded", "+m"},
		[2]string{"a__b1 Failed", ""}, [2]string{"m Succeeded", "+tail(who=0)"}, [2]string{"tail Succeeded", "=Succeeded(who=0)"})
}

// A late token begins nothing new: no further node, no fan-out, and no meeting within.
func TestLateTokensBeginNothing(t *testing.T) {
	inner := graphFrom([]string{"s x", "a x", "b x", "c x", "d x", "m x"}, "",
		`{"id":"o","from":"s","to":"a","fan_out":{"spawn_count":2}},{"id":"i","from":"a","to":"b","fan_out":{"spawn_count":2}},
		{"from":"b","to":"c","synchronization":{"strategy":"all","sibling_group":"i","timeout_ms":1500}},{"from":"c","to":"d"},
		{"from":"d","to":"m","synchronization":{"strategy":"any","sibling_group":"o","merge":{"source":"_branch.output.v"}}}`, ``)
	toMeeting := [][2]string{{"s Succeeded", "+a__b0 +a__b1"}, {"a__b0 Succeeded", "+b__b0-0 +b__b0-1"}, {"b__b0-0 Succeeded", ""}, {"b__b0-1 Succeeded", "+c__b0"}}
	after := func(steps ...[2]string) [][2]string {
		return append(toMeeting[:len(toMeeting):len(toMeeting)], steps...)
	}
	// a__b1 executes when the others meet: it fans out no more.
	play(t, inner, nil, "+s", after([2]string{"c__b0 Succeeded", "+d__b0"}, [2]string{"d__b0 Succeeded v=7", "+m"}, [2]string{"a__b1 Succeeded", ""}, [2]string{"m Succeeded", "=Succeeded(results=[7])"})...)
	// Its tokens meet no more, and all of them failing fails nothing.
	open := [][2]string{{"a__b1 Succeeded", "+b__b1-0 +b__b1-1"}, {"c__b0 Succeeded", "+d__b0"}, {"d__b0 Succeeded v=7", "+m"}}
	play(t, inner, nil, "+s", after(append(open[:3:3], [2]string{"b__b1-0 Succeeded", ""}, [2]string{"b__b1-1 Succeeded", ""}, [2]string{"m Succeeded", "=Succeeded(results=[7])"})...)...)
	play(t, inner, nil, "+s", after(append(open[:3:3], [2]string{"b__b1-0 Failed", ""}, [2]string{"b__b1-1 Error", ""}, [2]string{"m Succeeded", "=Succeeded(results=[7])"})...)...)
}

// A token that meets its siblings and continues elsewhere too does the latter only if it stands first in the definition.
func TestATokenThatHasMetBeginsNothing(t *testing.T) {
	meets := `{"from":"a","to":"m","synchronization":{"strategy":"any","sibling_group":"f","merge":{"source":"_branch.output.v"}}}`
	goesOn := `{"from":"a","to":"b"}`
	for both, want := range map[string]string{meets + "," + goesOn: "+m", goesOn + "," + meets: "+b__b0 +m"} {
		play(t, graphFrom([]string{"s x", "a x", "b x", "m x"}, "", `{"id":"f","from":"s","to":"a","fan_out":{"spawn_count":1}},`+both, ``), nil,
			"+s", [2]string{"s Succeeded", "+a__b0"}, [2]string{"a__b0 Succeeded v=1", want}, [2]string{"m Succeeded", "=Succeeded(results=[1])"})
	}
}

// A meeting within a branch that comes too late has no limit any more.
func TestALateMeetingHasNoLimit(t *testing.T) {
	d, err := plan.Read([]byte(graphFrom([]string{"s x", "a x", "b x", "c x", "d x", "m x"}, "",
		`{"id":"o","from":"s","to":"a","fan_out":{"spawn_count":2}},{"id":"i","from":"a","to":"b","fan_out":{"spawn_count":2},"condition":"_branch.index == 0"},{"from":"a","to":"d","condition":"_branch.index == 1"},
		{"from":"b","to":"c","synchronization":{"strategy":"all","sibling_group":"i","timeout_ms":1500}},{"from":"c","to":"d"},
		{"from":"d","to":"m","synchronization":{"strategy":"any","sibling_group":"o"}}`, ``)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(d, d.Entry, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1000).UTC()
	m.Begin(at)
	for _, child := range []string{"s", "a__b0", "a__b1", "b__b0-0"} {
		m.Ended(child, End{Phase: Succeeded, At: at})
	}
	if _, until := m.Limit(); !until.Equal(at.Add(1500 * time.Millisecond)) {
		t.Fatalf("the inner meeting is out of time at %v", until)
	}
	m.Ended("d__b1", End{Phase: Succeeded, At: at})
	if _, until := m.Limit(); !until.IsZero() || len(m.Meetings()) > 0 {
		t.Errorf("the others have met, and there is a limit: %v, %+v", until, m.Meetings())
	}
}

// A synchronization of some tokens fails as soon as too few can arrive. A token of a fan-out within counts for the token it comes from.
func TestTooFewCanArrive(t *testing.T) {
	of := func(fanOut, m string) string {
		return graphOf(fanOut, `"strategy":{"m_of_n":`+m+`},"merge":{"source":"_branch.output.v"}`, ``)
	}
	play(t, of(`{"spawn_count":3}`, "3"), nil, "+a", [2]string{"a Succeeded", "+b__b0 +b__b1 +b__b2"},
		[2]string{"b__b1 Error", "=Failed: 3 tasks must complete, and at most 2 can: node b: Error"}, [2]string{"b__b0 Succeeded", ""})
	play(t, of(`{"items":"{{ nodes.a.outputs.parameters.list ?? [1,2] }}"}`, "3"), nil, "+a",
		[2]string{"a Succeeded", "=Failed: 3 tasks must complete, and at most 2 can: the transition t has made 2"})
	nested := graphFrom([]string{"a x", "b x", "c x", "z x"}, "",
		`{"id":"o","from":"a","to":"b","fan_out":{"spawn_count":2}},{"id":"i","from":"b","to":"c","fan_out":{"spawn_count":2}},
		{"from":"c","to":"z","condition":"_branch.output.go != 'no'","synchronization":{"strategy":{"m_of_n":2},"sibling_group":"o","merge":{"source":"_branch.output.v"}}}`, ``)
	begun := [][2]string{{"a Succeeded", "+b__b0 +b__b1"}, {"b__b0 Succeeded", "+c__b0-0 +c__b0-1"}, {"b__b1 Succeeded", "+c__b1-0 +c__b1-1"}}
	after := func(steps ...[2]string) [][2]string { return append(begun[:3:3], steps...) }
	play(t, nested, nil, "+a", after([2]string{"c__b0-0 Succeeded v=1", ""}, [2]string{"c__b0-1 Failed", ""}, [2]string{"c__b1-0 Error", ""},
		[2]string{"c__b1-1 Succeeded v=2", "+z"}, [2]string{"z Succeeded", "=Succeeded(results=[1 2])"})...)
	play(t, nested, nil, "+a", after([2]string{"c__b0-0 Error", ""}, [2]string{"c__b0-1 Succeeded go=no", "=Failed: 2 tasks must complete, and at most 1 can: node c: Error"})...)
	play(t, nested, nil, "+a", begun[0], [2]string{"b__b1 Failed", "=Failed: 2 tasks must complete, and at most 1 can: node b: Failed"})
}
