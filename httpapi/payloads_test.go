package httpapi

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
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

// Content of a user that is one byte larger than the namespace takes is refused with 413 and its name, wherever it can stand. With the
// greatest size it is not.
func TestContentThatIsTooLargeIsRefused(t *testing.T) {
	const most = 100
	s := newStageOf(t, queue.Config{MaxBytes: most}, Config{})
	for _, row := range []struct{ path, body, field string }{ // % stands for so many bytes
		{"tasks", `{"kind":"k","payload":"%"}`, "payload"},
		{"tasks", `{"kind":"k","payload_base64":"="}`, "payload"},
		{"tasks", `{"kind":"k","headers":{"a":"%b"}}`, "headers"},
		{"tasks/batch", `{"tasks":[{"kind":"k"},{"kind":"k","payload":"%"}]}`, "tasks[1].payload"},
		{"tasks/0-A/resolve", `{"result":"%"}`, "result"},
		{"tasks/0-A/resolve", `{"result_base64":"="}`, "result"},
		{"tasks/0-A/reject", `{"error":"%bb"}`, "error"},
		{"tasks/0-A/resume", `{"payload":"%"}`, "payload"},
		{"agents/0-A/signals/go", `{"payload":"%"}`, "payload"},
		{"agents/0-A/tasks", `{"tasks":[{"task_kind":"k","input":"%"}]}`, "tasks[0].input"},
		{"agents/0-A/suspend", `{"epoch":1,"wait_for_signal":"go","user_state":"%"}`, "user_state"},
		{"agents/0-A/checkpoint", `{"epoch":1,"worker":"w","user_state":"%"}`, "user_state"},
		{"workers/w/settle", `{"call":"c1","outcomes":[{"id":"0-A","epoch":1,"verb":"complete","result":"%"}]}`, "outcomes[0].result"},
		{"workers/w/settle", `{"call":"c2","outcomes":[{"id":"0-A","epoch":1,"verb":"fail","error":"%bb"}]}`, "outcomes[0].error"},
	} {
		of := func(bytes int) string {
			inBase64 := base64.StdEncoding.EncodeToString(make([]byte, bytes))
			return strings.NewReplacer(`"="`, `"`+inBase64+`"`, "%", strings.Repeat("x", bytes-2)).Replace(row.body) // 2 for the quotes of JSON
		}
		before := redistest.Digest(t, s.q.Client(), s.q.Namespace())
		a := s.do("POST", row.path, of(most+1))
		if a.status != 413 || a.word() != "too_large" || a.field() != row.field || !strings.Contains(a.sentence(), "has 101 bytes, and the limit is 100") {
			t.Errorf("%s %s: %d %s, want 413 and the field %s", row.path, row.body, a.status, a.body, row.field)
		}
		if after := redistest.Digest(t, s.q.Client(), s.q.Namespace()); after != before {
			t.Errorf("%s %s has changed something", row.path, row.body)
		}
		if a := s.do("POST", row.path, of(most)); a.status == 413 || a.status == 400 {
			t.Errorf("%s %s with the greatest size: %d %s", row.path, row.body, a.status, a.body)
		}
	}
}
