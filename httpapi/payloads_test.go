package httpapi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/redistest"
)

// A request has a payload in JSON, a payload in base64, or no payload. A request with both, or with invalid base64, is refused and changes
// nothing.
func TestAPayloadIsJSONOrInBase64(t *testing.T) {
	s := newStage(t, Config{})
	boss := &hand{s: s, name: "boss"}
	path, claim := s.agentOf(boss)
	signals := 0
	signal := func() string {
		signals++
		return path + fmt.Sprint("signals/s", signals)
	}
	promise := func() string {
		return "tasks/" + s.want(201, "POST", "tasks", `{"kind":"p","role":"promise","queue":"promises"}`).text("id") + "/"
	}
	for _, r := range []struct {
		name, field string // of the payload, and its place in the body
		path        func() string
		body        string // % stands for the payload
		status      int
	}{
		{"payload", "payload", func() string { return "tasks" }, `{"kind":"k"%}`, 201},
		{"payload", "tasks[1].payload", func() string { return "tasks/batch" }, `{"tasks":[{"kind":"k"},{"kind":"k"%}]}`, 200},
		{"input", "tasks[1].input", func() string { return path + "tasks" }, `{"tasks":[{"task_kind":"k"},{"task_kind":"k"%}]}`, 200},
		{"payload", "payload", signal, `{%}`, 200},
		{"payload", "payload", func() string { return promise() + "resume" }, `{%}`, 200},
		{"result", "result", func() string { return promise() + "resolve" }, `{%}`, 200},
	} {
		fill := func(payload string) string {
			return strings.NewReplacer("{,", "{", ",}", "}").Replace(strings.Replace(r.body, "%", ","+payload, 1))
		}
		json, binary := `"`+r.name+`":{"n":1}`, `"`+r.name+`_base64":`
		for what, payload := range map[string]string{"none": "", "JSON": json, "null": `"` + r.name + `":null`, "base64": binary + `"AP8="`, "no bytes": binary + `""`} {
			if a := s.do("POST", r.path(), fill(payload)); a.status != r.status {
				t.Errorf("%s with %s: %d %s, want %d", r.field, what, a.status, a.body, r.status)
			}
		}
		at := r.path()
		before := redistest.Digest(t, s.q.Client(), s.q.Namespace())
		for what, row := range map[string]struct{ payload, field string }{
			"both":                 {json + "," + binary + `"AP8="`, r.field},
			"both, null and bytes": {`"` + r.name + `":null,` + binary + `"AP8="`, r.field},
			"no base64":            {binary + `"!"`, r.field + "_base64"},
			"no padding":           {binary + `"AP8"`, r.field + "_base64"},
			"base64 of URLs":       {binary + `"-_8="`, r.field + "_base64"},
			"bits behind the end":  {binary + `"AP9="`, r.field + "_base64"},
			"a number":             {binary + `1`, r.field + "_base64"},
		} {
			if a := s.do("POST", at, fill(row.payload)); a.status != 400 || a.word() != "invalid" || a.field() != row.field {
				t.Errorf("%s with %s: %d %s, want 400 and the field %s", r.field, what, a.status, a.body, row.field)
			}
		}
		if redistest.Digest(t, s.q.Client(), s.q.Namespace()) != before {
			t.Errorf("%s: requests that were refused have changed something", r.field)
		}
	}
	boss.settle(claim, "COMPLETED", `"verb":"complete","result_base64":"AP8="`)
	if a := s.want(200, "GET", "tasks/"+claim.ID+"/result", ""); !strings.Contains(a.body, `"result_base64":"AP8="`) || strings.Contains(a.body, `"result":`) {
		t.Errorf("a result that is no JSON is %s", a.body)
	}
}

func TestTheReferenceSaysThatAPayloadIsOneOfTwo(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "### Tasks in JSON")
	section, _, _ = strings.Cut(section, "\n## ")
	if words := strings.Join(strings.Fields(section), " "); !strings.Contains(words, "`payload_base64`") || !strings.Contains(words, "one of the two, or none") {
		t.Errorf("the section says %s", words)
	}
}
