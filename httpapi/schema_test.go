package httpapi

import (
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"os"
	"slices"
	"strings"
	"testing"
)

// described is the document, as a client reads it.
var described = func() map[string]any {
	var all map[string]any
	if err := json.Unmarshal(OpenAPI(), &all); err != nil {
		panic(err)
	}
	return all
}()

// fits returns what does not fit a schema, with its place. It is stricter than the schema: a member that the schema does not name does not fit,
// but for names in base64.
func fits(s map[string]any, value any, at string) (wrong []string) {
	if ref, is := s["$ref"].(string); is {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		named, known := described["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any)
		if !known {
			return []string{at + ": there is no schema " + name}
		}
		return fits(named, value, at)
	}
	if kinds := typesOf(s); kinds != nil && !slices.ContainsFunc(kinds, func(k string) bool { return is(k, value) }) {
		return []string{fmt.Sprintf("%s: %v is no %v", at, value, kinds)}
	}
	switch value := value.(type) {
	case []any:
		if items, has := s["items"].(map[string]any); has {
			for i, v := range value {
				wrong = append(wrong, fits(items, v, fmt.Sprintf("%s[%d]", at, i))...)
			}
		}
	case map[string]any:
		wrong = fitsMembers(s, value, at)
	}
	return wrong
}

func fitsMembers(s map[string]any, value map[string]any, at string) (wrong []string) {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, has := value[name.(string)]; !has {
			wrong = append(wrong, fmt.Sprintf("%s.%s is missing", at, name))
		}
	}
	properties, has := s["properties"].(map[string]any)
	for name, v := range value {
		if !has {
			break
		}
		member, known := properties[name].(map[string]any)
		switch {
		case known:
			wrong = append(wrong, fits(member, v, at+"."+name)...)
		case s["additionalProperties"] == true:
		case !strings.HasSuffix(name, "_base64"):
			wrong = append(wrong, fmt.Sprintf("%s.%s is not described", at, name))
		}
	}
	return wrong
}

func typesOf(s map[string]any) (all []string) {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			all = append(all, one.(string))
		}
	}
	return all
}

func is(kind string, value any) bool {
	switch v := value.(type) {
	case nil:
		return kind == "null"
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	}
	return kind == "object"
}

// check fails the test if an answer is not what the document says of its route.
func (a answered) check(t *testing.T, r *route) {
	t.Helper()
	operation := described["paths"].(map[string]any)["/api/v1/{namespace}/"+r.Path].(map[string]any)[strings.ToLower(r.Method)].(map[string]any)
	response, known := operation["responses"].(map[string]any)[fmt.Sprint(a.status)].(map[string]any)
	if !known {
		t.Errorf("%s %s answers with %d, which is not described: %s", r.Method, r.Path, a.status, a.body)
		return
	}
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	media, known := response["content"].(map[string]any)[kind].(map[string]any)
	if !known || a.json == nil {
		t.Errorf("%s %s answers with %d %q, which is not described: %s", r.Method, r.Path, a.status, kind, a.body)
		return
	}
	s := media["schema"].(map[string]any)
	for _, wrong := range fits(s, any(a.json), "") {
		t.Errorf("%s %s answers with %.300s: %s", r.Method, r.Path, a.body, wrong)
	}
}

func TestTheSchemaCheckerFindsWhatDoesNotFit(t *testing.T) {
	s := map[string]any{"type": "object", "required": []any{"a"}, "properties": map[string]any{"a": map[string]any{"type": "integer"}, "b": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}}
	for text, want := range map[string]string{
		`{"a":1,"b":["x"]}`: "", `{"a":1.5}`: "no [integer]", `{}`: ".a is missing", `{"a":1,"c":2}`: ".c is not described", `{"a":1,"b":[1]}`: ".b[0]", `[]`: "no [object]",
	} {
		var value any
		json.Unmarshal([]byte(text), &value)
		if got := strings.Join(fits(s, value, ""), "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestTheReferenceIsMadeFromTheTable(t *testing.T) {
	for path, want := range map[string]string{"../docs/reference/openapi.json": string(OpenAPI()), "../docs/reference/http.md": Reference()} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what the table says: run make docs (%v)", path, err)
		}
	}
	ids := map[string]bool{}
	for _, r := range table() {
		if ids[r.ID] || r.ID == "" || r.Summary == "" || strings.HasSuffix(r.Summary, ".") || r.Status == nil || r.Answer == nil || r.Serve == nil || !slices.Contains(roles, r.Role) {
			t.Errorf("the route %s %s is not whole, or its id %q is taken", r.Method, r.Path, r.ID)
		}
		ids[r.ID] = true
	}
}
