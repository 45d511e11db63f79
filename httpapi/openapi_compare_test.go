package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// operationOf returns what the document says of a request.
func operationOf(path, method string) object {
	item, _ := described["paths"].(object)[path].(object)
	operation, _ := item[strings.ToLower(method)].(object)
	return operation
}

// bodySchemaOf returns the schema of the body of a route, or nil.
func bodySchemaOf(r route) object {
	body, is := operationOf("/api/v1/{namespace}/"+r.Path, r.Method)["requestBody"].(object)
	if !is {
		return nil
	}
	return resolved(body["content"].(object)["application/json"].(object)["schema"].(object))
}

// resolved follows a reference.
func resolved(s object) object {
	if ref, is := s["$ref"].(string); is {
		return described["components"].(object)["schemas"].(object)[strings.TrimPrefix(ref, "#/components/schemas/")].(object)
	}
	return s
}

// least returns the smallest value that a schema allows: an object with the members that it needs, a list with one.
func least(s object) any {
	s = resolved(s)
	switch kinds := typesOf(s); {
	case slices.Contains(kinds, "object"):
		value := object{}
		needed, _ := s["required"].([]any)
		for _, name := range needed {
			value[name.(string)] = least(s["properties"].(object)[name.(string)].(object))
		}
		return value
	case slices.Contains(kinds, "array"):
		return []any{least(s["items"].(object))}
	case slices.Contains(kinds, "integer"):
		return 1
	case s["contentEncoding"] != nil:
		return "AA=="
	case slices.Contains(kinds, "string"):
		return "0-A"
	}
	return nil
}

// eachObject calls visit for each object in a value, with its schema and its place.
func eachObject(s object, value any, at string, visit func(s, value object, at string)) {
	s = resolved(s)
	switch value := value.(type) {
	case []any:
		for i := range value {
			eachObject(s["items"].(object), value[i], fmt.Sprintf("%s[%d]", at, i), visit)
		}
	case object:
		visit(s, value, at)
		for name, member := range value {
			eachObject(s["properties"].(object)[name].(object), member, strings.TrimPrefix(at+"."+name, "."), visit)
		}
	}
}

// What the document says is needed, and only that, is needed: in the body, and in each object within it.
func TestTheDocumentSaysWhatABodyNeeds(t *testing.T) {
	s := newStage(t, Config{})
	needed := 0
	for _, r := range table() {
		schema := bodySchemaOf(r)
		if schema == nil {
			continue
		}
		path, _ := sample(r)
		send := func(body any) answered { return s.do(r.Method, path, string(mustJSON(body))) }
		variants := []any{least(schema)} // and each optional member that is an object or a list of them
		for name, member := range schema["properties"].(object) {
			if kinds := typesOf(resolved(member.(object))); slices.Contains(kinds, "object") || slices.Contains(kinds, "array") {
				body := least(schema).(object)
				body[name] = least(member.(object))
				variants = append(variants, body)
			}
		}
		for _, body := range variants {
			if a := send(body); strings.Contains(a.sentence(), "is missing") {
				t.Errorf("%s needs more than the document says: %s is answered with %d %s", r.ID, mustJSON(body), a.status, a.body)
			}
			eachObject(schema, body, "", func(s, value object, at string) {
				list, _ := s["required"].([]any)
				for _, word := range list {
					name := word.(string)
					kept := value[name]
					delete(value, name)
					field := strings.TrimPrefix(at+"."+name, ".")
					if a := send(body); a.status != 400 || a.field() != field || !strings.Contains(a.sentence(), "is missing") {
						t.Errorf("%s without %s is answered with %d %s", r.ID, field, a.status, a.body)
					}
					value[name] = kept
					needed++
				}
			})
		}
	}
	if needed < 20 {
		t.Errorf("%d needed members were tried", needed)
	}
}

// A member of a body with another type than the document says is refused and named, in each body and in each object within it.
func TestAMemberOfAnotherTypeIsRefused(t *testing.T) {
	s := newStage(t, Config{})
	values := map[string]any{"string": "x", "integer": 1, "boolean": true, "array": []any{1}, "object": object{"a": object{}}, "a broken number": 1.5}
	tried := 0
	for _, r := range table() {
		schema := bodySchemaOf(r)
		if schema == nil {
			continue
		}
		path, _ := sample(r)
		before := redistest.Digest(t, s.q.Client(), s.q.Namespace())
		for name, member := range schema["properties"].(object) {
			body := least(schema).(object)
			if typesOf(resolved(member.(object))) != nil {
				body[name] = least(member.(object))
			}
			eachObject(schema, body, "", func(of, value object, at string) {
				_, isTask := of["not"] // whose texts can be given as numbers
				for name, member := range of["properties"].(object) {
					kinds := typesOf(resolved(member.(object)))
					if kinds == nil { // any JSON
						continue
					}
					kept, had := value[name]
					for kind, wrong := range values {
						_, isNumber := wrong.(float64)
						if slices.Contains(kinds, kind) && kind != "array" && kind != "object" || isTask && (isNumber || kind == "integer") {
							continue
						}
						if items, _ := resolved(member.(object))["items"].(object); kind == "array" && slices.Contains(kinds, kind) && typesOf(resolved(items)) == nil {
							continue
						}
						value[name] = wrong
						field := strings.TrimPrefix(at+"."+name, ".")
						if a := s.do(r.Method, path, string(mustJSON(body))); a.status != 400 || !strings.HasPrefix(a.field(), field) {
							t.Errorf("%s with %s = %v is answered with %d %s", r.ID, field, wrong, a.status, a.body)
						}
						tried++
					}
					if delete(value, name); had {
						value[name] = kept
					}
				}
			})
		}
		if after := redistest.Digest(t, s.q.Client(), s.q.Namespace()); after != before {
			t.Errorf("%s: a request that was refused has changed something", r.ID)
		}
	}
	t.Logf("%d members were tried", tried)
	if tried < 500 {
		t.Errorf("%d members were tried", tried)
	}
}

// Each route gives each answer that does not depend on what the request is about. Answers are compared with the document when they
// arrive (answered.check).
func TestTheDocumentHasTheAnswersOfAllRoutes(t *testing.T) {
	open := newStage(t, Config{MaxBody: 2000, BodyTime: 50 * time.Millisecond})
	guarded := open.another(withTokens(t))
	hurried := open.another(Config{Rate: 1, Burst: 1})
	busy := open.another(Config{MaxRequests: 1, MaxWaiting: 1})
	busy.server.requests <- struct{}{}
	hurried.do("GET", "queues", "")
	hurried.server.rates.rate = 1e-6 // there is no other request meanwhile
	expect := func(r route, a answered, status int) {
		t.Helper()
		if a.status != status {
			t.Errorf("%s is answered with %d %s, want %d", r.ID, a.status, a.body, status)
		}
	}
	for _, r := range table() {
		path, body := sample(r)
		expect(r, guarded.do(r.Method, path, body), 401)
		if r.Role != Read {
			expect(r, guarded.do(r.Method, path, body, as("a-reader")), 403)
		}
		expect(r, hurried.do(r.Method, path, body), 429)
		expect(r, busy.do(r.Method, path, body), 503)
		expect(r, open.do(r.Method, "/api/v1/nothing/"+path, body), 404)
		if r.Body == nil {
			continue
		}
		expect(r, open.do(r.Method, path, `"`+strings.Repeat("x", 3000)+`"`), 413)
		expect(r, open.do(r.Method, path, body, header("Content-Type", "text/plain")), 415)
		response, err := open.raw(fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{", r.Method, strings.TrimPrefix(open.base, open.web.URL), path))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		slow := answered{status: response.StatusCode, header: response.Header, body: string(text), json: read(string(text)).(object)}
		expect(r, slow, 408)
		slow.check(t, &r)
	}
}

// The source of this package, without tests.
func source(t *testing.T) string {
	t.Helper()
	files, _ := filepath.Glob("*.go")
	var all strings.Builder
	for _, name := range files {
		if text, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		} else if !strings.HasSuffix(name, "_test.go") {
			all.Write(text)
		}
	}
	return all.String()
}

// The document has each path, each status and each header of a request that the source names.
func TestTheDocumentHasWhatTheSourceNames(t *testing.T) {
	text, document := source(t), string(OpenAPI())
	found := func(expression string) (all []string) {
		for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
			all = append(all, match[1])
		}
		if len(all) < 2 {
			t.Fatalf("the source has %v for %s", all, expression)
		}
		return all
	}
	for _, path := range found(`s\.mux\.Handle(?:Func)?\("([^"]+)"`) {
		if path != "/" && operationOf(path, "GET") == nil {
			t.Errorf("the path %s is not described", path)
		}
	}
	statuses := map[string]int{}
	for code := 100; code < 600; code++ {
		name := strings.NewReplacer(" ", "", "-", "", "'", "").Replace(http.StatusText(code))
		statuses[name] = code
	}
	for _, name := range append(found(`fail\((?:http\.Status)?(\w+), "`), found(`http\.Status(\w+), "\w+", (?:0|\d* ?\*? ?time)`)...) {
		code, known := statuses[name]
		if !known {
			code, _ = strconv.Atoi(name)
		}
		if name != "status" && !strings.Contains(document, fmt.Sprintf(`"%d": {`, code)) {
			t.Errorf("the status %s (%d) is not described", name, code)
		}
	}
	elsewhere := []string{"Authorization", // security
		"Content-Type", "Content-Encoding", // the body
		"Accept",                                  // the types of media of an answer
		"Origin", "Access-Control-Request-Method"} // of browsers
	for _, name := range found(`Header\.(?:Get|Values)\((?:"|)(\w[\w-]*)`) {
		if name == "lastEventID" {
			name = lastEventID
		}
		if name != "header" && !slices.Contains(elsewhere, name) && !strings.Contains(document, fmt.Sprintf(`"name": %q`, name)) {
			t.Errorf("the header %s is not described", name)
		}
	}
}

// The answers of the paths beside the API, and a stream, have the types of media that the document says.
func TestTheDocumentHasTheTypesOfAnswers(t *testing.T) {
	s := newStage(t, Config{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	})})
	for _, row := range []struct{ path, described, accept string }{
		{"/healthz", "/healthz", ""}, {"/readyz", "/readyz", ""}, {"/metrics", "/metrics", ""},
		{"/api/v1/" + s.q.Namespace() + "/events", "/api/v1/{namespace}/events", ""}, {"/api/v1/" + s.q.Namespace() + "/events", "/api/v1/{namespace}/events", "text/event-stream"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "GET", s.web.URL+row.path, nil)
		r.Header.Set("Accept", row.accept)
		answer, err := s.web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
		content := operationOf(row.described, "GET")["responses"].(object)[fmt.Sprint(answer.StatusCode)].(object)["content"].(object)
		if _, known := content[kind]; !known {
			t.Errorf("%s is answered with %d as %q, which is not described", row.path, answer.StatusCode, kind)
		}
		if row.accept != "" && !bufio.NewScanner(answer.Body).Scan() {
			t.Errorf("%s: the stream has ended", row.path)
		}
		stop()
		answer.Body.Close()
	}
	for _, r := range table() {
		media := operationOf("/api/v1/{namespace}/"+r.Path, r.Method)["responses"].(object)[fmt.Sprint(r.Status[0])].(object)["content"].(object)
		if _, streams := media["text/event-stream"]; streams != r.Stream {
			t.Errorf("%s: the document has the types %v", r.ID, media)
		}
	}
}

func mustJSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
