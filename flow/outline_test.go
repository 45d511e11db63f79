package flow_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
)

// The latest end of a definition is the longest way through it, within each limit around it.
func TestTheLatestEndOfADefinition(t *testing.T) {
	const h = time.Hour
	bounded := `,"attempt_timeout":"1m","queue_timeout":"30s"`
	for _, test := range []struct {
		name, text string
		want       time.Duration // 0: never
		unbounded  string
	}{
		{"a leaf without a limit is bounded by the hour of the run", dagOf("f", "", job("x", ""), ""), h, "main/x"},
		{"nothing bounds it", dagOf("f", `,"timeout":null`, job("x", "")+`,`+job("y", `,"timeout":"1m"`), ""), 0, "main/x"},
		{"an attempt without a bound in line", dagOf("f", `,"timeout":null`, job("x", `,"attempt_timeout":"1m"`), ""), 0, "main/x"},
		{"one after the other", dagOf("f", "", job("x", `,"timeout":"10s"`)+`,`+job("y", `,"timeout":"5s","dependencies":["x"]`)+`,`+job("z", `,"timeout":"12s"`), ""), 15 * time.Second, ""},
		{"attempts and pauses", dagOf("f", "", job("x", bounded+`,"retry":{"limit":2,"backoff":{"delay":"10s","exponential":true}}`), ""), 3*90*time.Second + 30*time.Second, ""},
		{"one deadline for all attempts", dagOf("f", "", job("x", bounded+`,"timeout":"1m","retry":{"limit":2}`), ""), time.Minute, ""},
		{"a wait", dagOf("f", "", `{"name":"w","executor":{"type":"wait"}}`, ""), h, "main/w"},
		{"a wait with a deadline", dagOf("f", "", `{"name":"w","timeout":"2m","executor":{"type":"wait"}}`, ""), 2 * time.Minute, ""},
		{"a sleep", dagOf("f", `,"timeout":null`, `{"name":"s","executor":{"type":"sleep","duration":"3d"}}`, ""), 72 * h, ""},
		{"nothing takes time", dagOf("f", "", `{"name":"e","executor":{"type":"echo"}}`, ""), 0, ""},
		{"a part with a limit", dagOf("f", `,"timeout":null`, `{"name":"p","template":"in","timeout":"5m"}`, `,{"name":"in","dag":{"tasks":[`+job("x", "")+`]}}`), 5 * time.Minute, "in/x"},
		{"a retried wrapper", dagOf("f", `,"timeout":null`, `{"name":"p","template":"again","retry":{"limit":1}}`, `,{"name":"again","task":{"template":"in"}},{"name":"in","dag":{"tasks":[`+job("x", `,"timeout":"1m"`)+`]}}`), 2 * time.Minute, ""},
		{"rounds at once", `{"id":"f","spec":{"entrypoint":"main","templates":[{"name":"main","loop":{"items":[1,2,3],"limit":5,"parallel":2,"task":{"timeout":"1m","executor":{"type":"job"}}}}]}}`, 2 * time.Minute, ""},
		{"adaptive times", dagOf("f", "", job("x", `,"timeout":"adaptive","adaptive":{"least":"2s","most":"9s"}`), ""), 9 * time.Second, ""},
		{"an adaptive attempt", dagOf("f", "", job("x", `,"attempt_timeout":"adaptive","queue_timeout":"5s","adaptive":{"least":"3s","most":"8s"}`), ""), 13 * time.Second, ""},
		{"ten pauses from an hour, each at most a day", dagOf("f", `,"timeout":null`, job("x", `,"attempt_timeout":"1h","queue_timeout":"1h","retry":{"limit":10,"backoff":{"delay":"1h","exponential":true}}`), ""), (22 + 31 + 5*24) * h, ""},
		{"a thousand retries of ten years", dagOf("f", `,"timeout":null`, job("x", `,"attempt_timeout":"3650d","queue_timeout":"3650d","retry":{"limit":1000}`), ""), 100 * 365 * 24 * h, ""},
		{"a graph", `{"timeout_ms":null,"nodes":[{"id":"a","action_id":"x","timeout_ms":1000},{"id":"b","action_id":"x","timeout_ms":3000},{"id":"c","action_id":"x","timeout_ms":1000}],
			"actions":[{"id":"x","kind":"x"}],"transitions":[{"from":"a","to":"b"},{"from":"a","to":"c"}]}`, 8 * time.Second, ""},
		{"a graph that goes round", `{"timeout_ms":60000,"initial":"a","nodes":[{"id":"a","action_id":"x","timeout_ms":1000}],"actions":[{"id":"x","kind":"x"}],"transitions":[{"from":"a","to":"a"}]}`, time.Minute, "graph (its transitions go round)"},
	} {
		p, err := flow.Outline([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if p.Latest != test.want || strings.Join(p.Unbounded, " ") != test.unbounded {
			t.Errorf("%s: at most %v, without a limit are %v, want %v and %s", test.name, p.Latest, p.Unbounded, test.want, test.unbounded)
		}
	}
	if _, err := flow.Outline([]byte(`{"spec":{}}`)); err == nil {
		t.Error("Outline of a definition with faults returns no error")
	}
}

func TestAnOutlineInWords(t *testing.T) {
	got := func(text string) string {
		t.Helper()
		p, err := flow.Outline([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p.String()
	}
	text := dagOf("f", "", job("x", `,"attempt_timeout":"1m","queue_timeout":"30s","retry":{"limit":2}`)+`,{"name":"p","template":"in","dependencies":["x"]}`, `,{"name":"in","dag":{"tasks":[`+job("y", "")+`]}}`)
	if got, want := got(text), `main
  x: at most 4m30s; attempt 1m; in line 30s; 3 attempts, after errors and timeouts of an attempt
  p: no limit, since something in in has none; after x
in
  y: no limit
The run ends at most 1h after its beginning, by its timeout; these have no limit: in/y
`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := got(dagOf("f", `,"timeout":null`, job("x", ""), "")); !strings.HasSuffix(got, "The run may never end: it has no timeout, and these have no limit: main/x\n") {
		t.Error(got)
	}
	if got := got(dagOf("f", "", job("x", `,"attempt_timeout":"1m","queue_timeout":"1m"`), "")); !strings.HasSuffix(got, "The run ends at most 2m after its beginning; with the retries of kinds later, but at most 1h, by its timeout\n") {
		t.Error(got)
	}
	for tokens, want := range map[string]string{"2": "at most 3m after the first; then the run fails", "100": "at most 30m after the first; then the run fails"} {
		timed := strings.ReplaceAll(fanOf("f", "", tokens, `"strategy":"all"`), `"id":"b",`, `"id":"b","attempt_timeout":"1m",`)
		if got := got(timed); !strings.Contains(got, "waits for all tokens of t, "+want) {
			t.Errorf("%s tokens: %s", tokens, got)
		}
	}
	if got := got(fanOf("f", "", "2", `"strategy":{"m_of_n":2},"timeout":"5m","on_timeout":"proceed_with_available"`)); !strings.Contains(got, "c: no limit; waits for 2 tokens of t, at most 5m after the first; then those that have come continue\n") {
		t.Error(got)
	}
}

// The graphs have a line for each node and each edge, and no text of a definition can break them.
func TestMermaid(t *testing.T) {
	got, err := flow.Mermaid([]byte(`{"nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x"}],"actions":[{"id":"x","kind":"x"}],
		"transitions":[{"from":"a","to":"b","condition":"nodes.a.outputs.parameters.v < \"]\""}]}`))
	if want := "flowchart TD\n  n1[\"a<br/>x\"]\n  n2[\"b<br/>x\"]\n  n1 -->|\"nodes.a.outputs.parameters.v #lt; #quot;]#quot;\"| n2\n"; err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := flow.Mermaid([]byte(`{}`)); err == nil {
		t.Error("Mermaid of a definition with faults returns no error")
	}
	s := newStage(t)
	s.put(dagOf("d", "", job("x", "")+`,{"name":"p","template":"in","dependencies":["x"]}`, `,{"name":"in","loop":{"items":[1,2,3],"parallel":2,"task":{"executor":{"type":"job","queue":"round"}}}}`))
	id := s.enqueue("flow.d", "")
	s.drain()
	s.complete(id+".x", "x", `{}`)
	s.complete(id+".p.round__0", "round", `{}`)
	lines := strings.Split(s.read(id).Mermaid(), "\n")
	for i, line := range lines {
		if before, left, found := strings.Cut(line, "out of time in "); found {
			_, after, _ := strings.Cut(left, `"`)
			lines[i] = before + `…"` + after
		}
	}
	want := []string{"flowchart TD", `  n1["x<br/>Succeeded"]:::Succeeded`, `  n2["p<br/>Suspended<br/>…"]:::Suspended`, "  n1 --> n2", `  subgraph f3["p"]`,
		`    n4["round<br/>1 Succeeded<br/>2 Ready<br/>…"]:::Ready`, "  end", "  classDef Ready fill:#fff3c4,stroke:#b58900", "  classDef Suspended fill:#e6dcff,stroke:#6c4ab6",
		"  classDef Succeeded fill:#d4f4d4,stroke:#2b7a2b", ""}
	if !slices.Equal(lines, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
