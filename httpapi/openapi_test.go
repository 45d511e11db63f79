package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// openAPIFaults returns what is wrong with an OpenAPI document: where it breaks the rules of OpenAPI 3.1 and of JSON Schema 2020-12, as far as
// Curfew uses them. What Curfew does not use is a fault, so that a rule is written here before it is used.
func openAPIFaults(document map[string]any) []string {
	d := &openAPICheck{document: document, ids: map[string]string{}, shapes: map[string]string{}, used: map[string]bool{}}
	d.run()
	slices.Sort(d.faults)
	return d.faults
}

type object = map[string]any

type openAPICheck struct {
	document object
	faults   []string
	ids      map[string]string // operationId: its place
	shapes   map[string]string // path without the names of its parameters: the path
	used     map[string]bool   // schemas that something refers to
}

func (d *openAPICheck) must(ok bool, at, format string, args ...any) {
	if !ok {
		d.faults = append(d.faults, at+": "+fmt.Sprintf(format, args...))
	}
}

// members returns an object, all of whose names must be allowed.
func (d *openAPICheck) members(value any, at string, allowed ...string) object {
	is, ok := value.(object)
	d.must(ok, at, "is no object")
	for name := range is {
		d.must(slices.Contains(allowed, name), at, "has %q, which is not known here", name)
	}
	return is
}

// all yields the members of an object whose names can be any, in their order.
func (d *openAPICheck) all(value any, at string, each func(name string, value any, at string)) {
	is, ok := value.(object)
	d.must(ok, at, "is no object")
	for _, name := range slices.Sorted(maps.Keys(is)) {
		each(name, is[name], at+"/"+name)
	}
}

func (d *openAPICheck) texts(is object, at string, names ...string) {
	for _, name := range names {
		text, _ := is[name].(string)
		d.must(strings.TrimSpace(text) != "", at, "has no %s", name)
	}
}

func (d *openAPICheck) run() {
	top := d.members(d.document, "#", "openapi", "info", "paths", "components", "security")
	version, _ := top["openapi"].(string)
	d.must(regexp.MustCompile(`^3\.1\.\d+$`).MatchString(version), "#/openapi", "is %q, want 3.1", version)
	d.texts(d.members(top["info"], "#/info", "title", "version", "description"), "#/info", "title", "version")
	parts := d.members(top["components"], "#/components", "schemas", "securitySchemes")
	d.all(parts["schemas"], "#/components/schemas", func(name string, s any, at string) {
		d.must(regexp.MustCompile(`^[a-zA-Z0-9._-]+$`).MatchString(name), at, "has a name that no component can have")
		d.schema(s, at)
	})
	d.all(parts["securitySchemes"], "#/components/securitySchemes", func(_ string, s any, at string) {
		is := d.members(s, at, "type", "scheme")
		d.must(is["type"] == "http" && (is["scheme"] == "bearer" || is["scheme"] == "basic"), at, "is no scheme of HTTP")
	})
	d.security(top["security"], "#/security")
	d.all(top["paths"], "#/paths", d.path)
	d.all(parts["schemas"], "#/components/schemas", func(name string, _ any, at string) { d.must(d.used[name], at, "is not used") })
}

func (d *openAPICheck) security(value any, at string) {
	list, ok := value.([]any)
	d.must(ok, at, "is no list")
	schemes, _ := d.document["components"].(object)["securitySchemes"].(object)
	for _, requirement := range list {
		d.all(requirement, at, func(name string, scopes any, at string) {
			_, known := schemes[name]
			d.must(known, at, "is no scheme of the components")
			d.must(reflect.DeepEqual(scopes, []any{}), at, "has scopes, which a scheme of HTTP has not")
		})
	}
}

var inBraces = regexp.MustCompile(`\{([^{}]*)\}`)

func (d *openAPICheck) path(path string, item any, at string) {
	d.must(strings.HasPrefix(path, "/"), at, "does not begin with a slash")
	shape := inBraces.ReplaceAllString(path, "{}")
	d.must(d.shapes[shape] == "", at, "is the same path as %s", d.shapes[shape])
	d.must(!strings.ContainsAny(strings.ReplaceAll(shape, "{}", ""), "{}?#"), at, "is no template")
	d.shapes[shape] = path
	var names []string
	for _, match := range inBraces.FindAllStringSubmatch(path, -1) {
		d.must(!slices.Contains(names, match[1]), at, "has the parameter %s twice", match[1])
		names = append(names, match[1])
	}
	for method, operation := range d.members(item, at, "get", "put", "post", "delete") {
		d.operation(operation, method, names, at+"/"+method)
	}
}

func (d *openAPICheck) operation(value any, method string, inPath []string, at string) {
	o := d.members(value, at, "operationId", "summary", "description", "tags", "parameters", "requestBody", "responses", "security")
	d.texts(o, at, "operationId", "summary")
	id, _ := o["operationId"].(string)
	d.must(d.ids[id] == "", at, "has the operationId of %s", d.ids[id])
	d.ids[id] = at
	if o["security"] != nil {
		d.security(o["security"], at+"/security")
	}
	d.parameters(o["parameters"], inPath, at+"/parameters")
	if o["requestBody"] != nil {
		d.must(method == "put" || method == "post", at, "has a body")
		body := d.members(o["requestBody"], at+"/requestBody", "required", "content")
		_, is := body["required"].(bool)
		d.must(is, at+"/requestBody", "does not say whether it is required")
		d.content(body["content"], at+"/requestBody")
	}
	ok := false
	d.all(o["responses"], at+"/responses", func(status string, value any, at string) {
		code, err := strconv.Atoi(status)
		d.must(err == nil && code >= 100 && code < 600, at, "is no status")
		ok = ok || code/100 == 2
		response := d.members(value, at, "description", "content")
		d.texts(response, at, "description")
		d.content(response["content"], at)
	})
	d.must(ok, at, "has no response for success")
}

// parameters checks the parameters of an operation. Those in the path are the ones that the path names.
func (d *openAPICheck) parameters(value any, inPath []string, at string) {
	list, ok := value.([]any)
	d.must(ok || value == nil, at, "is no list")
	declared, seen := []string{}, map[string]bool{}
	for i, value := range list {
		at := fmt.Sprintf("%s/%d", at, i)
		p := d.members(value, at, "name", "in", "required", "description", "schema")
		d.texts(p, at, "name", "in")
		name, where := fmt.Sprint(p["name"]), fmt.Sprint(p["in"])
		d.must(!seen[where+name], at, "is declared twice")
		seen[where+name] = true
		switch where {
		case "path":
			declared = append(declared, name)
			d.must(p["required"] == true, at, "is in the path and not required")
		case "query", "header":
			d.texts(p, at, "description")
		default:
			d.must(false, at, "is in %s", where)
		}
		d.schema(p["schema"], at+"/schema")
	}
	slices.Sort(declared)
	want := slices.Sorted(slices.Values(inPath))
	d.must(slices.Equal(declared, want), at, "declare %v of the path, which names %v", declared, want)
}

func (d *openAPICheck) content(value any, at string) {
	media := d.members(value, at+"/content", "application/json", "application/openmetrics-text", "application/yaml", "text/event-stream", "text/plain")
	d.must(len(media) > 0, at+"/content", "has no type of media")
	for kind, of := range media {
		at := at + "/content/" + kind
		d.schema(d.members(of, at, "schema")["schema"], at+"/schema")
	}
}

var schemaTypes = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

func (d *openAPICheck) schema(value any, at string) {
	// nullable, and a minimum that is true or false, are of OpenAPI 3.0
	s := d.members(value, at, "$ref", "type", "properties", "required", "items", "additionalProperties", "not", "description", "enum", "default", "minimum", "maximum", "contentEncoding")
	if value == nil {
		return
	}
	if ref, has := s["$ref"]; has {
		d.reference(ref, at)
	}
	kinds := typesOf(s)
	_, has := s["type"]
	d.must(!has || len(kinds) > 0, at, "has the type %v", s["type"])
	for i, kind := range kinds {
		d.must(slices.Contains(schemaTypes, kind) && !slices.Contains(kinds[:i], kind), at, "has the type %v", kinds)
	}
	of := func(kind string) bool { return slices.Contains(kinds, kind) }
	numeric := of("integer") || of("number")
	properties, _ := s["properties"].(object)
	for name := range s {
		switch name {
		case "properties", "required", "additionalProperties":
			d.must(of("object"), at, "has %s and is no object", name)
		case "items":
			d.must(of("array"), at, "has items and is no array")
			d.schema(s["items"], at+"/items")
		case "minimum", "maximum":
			_, is := s[name].(float64)
			d.must(numeric && is, at, "has the %s %v", name, s[name])
		case "contentEncoding":
			d.must(of("string") && s[name] == "base64", at, "has the contentEncoding %v", s[name])
		}
	}
	for name, property := range properties {
		d.schema(property, at+"/properties/"+name)
	}
	required, _ := s["required"].([]any)
	d.must(s["required"] == nil || len(required) > 0, at, "requires %v", s["required"])
	for i, name := range required {
		text, _ := name.(string)
		_, known := properties[text]
		d.must(known || s["additionalProperties"] == true, at, "requires %v, which is no property", name)
		d.must(!slices.Contains(required[:i], name), at, "requires %v twice", name)
	}
	if excluded, has := s["not"]; has { // members that exclude each other
		names, _ := d.members(excluded, at+"/not", "required")["required"].([]any)
		d.must(len(names) > 1, at, "excludes %v", names)
		for _, name := range names {
			text, _ := name.(string)
			_, known := properties[text]
			d.must(known, at, "excludes %v, which is no property", name)
		}
	}
	if more, has := s["additionalProperties"]; has {
		if _, is := more.(bool); !is {
			d.schema(more, at+"/additionalProperties")
		}
	}
	d.values(s, kinds, at)
}

// values checks the values that a schema lists or suggests.
func (d *openAPICheck) values(s object, kinds []string, at string) {
	least, hasLeast := s["minimum"].(float64)
	most, hasMost := s["maximum"].(float64)
	d.must(!hasLeast || !hasMost || least <= most, at, "has the limits %v to %v", least, most)
	fit := func(value any) bool {
		n, _ := value.(float64)
		return slices.ContainsFunc(kinds, func(k string) bool { return is(k, value) }) && (!hasLeast || n >= least) && (!hasMost || n <= most)
	}
	if value, has := s["default"]; has {
		d.must(fit(value), at, "has the default %v, which does not fit", value)
	}
	list, isList := s["enum"].([]any)
	d.must(s["enum"] == nil || isList && len(list) > 0, at, "has the enum %v", s["enum"])
	for i, value := range list {
		d.must(fit(value) && !slices.Contains(list[:i], value), at, "has the enum %v", list)
	}
}

func (d *openAPICheck) reference(ref any, at string) {
	text, _ := ref.(string)
	name, is := strings.CutPrefix(text, "#/components/schemas/")
	d.used[name] = true
	schemas, _ := d.document["components"].(object)["schemas"].(object)
	_, known := schemas[name]
	d.must(is && known, at, "refers to %v, which does not exist", ref)
}

func TestTheOpenAPIDocumentIsValid(t *testing.T) {
	for _, fault := range openAPIFaults(described) {
		t.Error(fault)
	}
	if paths := described["paths"].(object); len(paths) < 30 {
		t.Errorf("%d paths were checked", len(paths))
	}
}

// Each change of the document breaks a rule, and must be found.
func TestFaultsOfAnOpenAPIDocumentAreFound(t *testing.T) {
	const get, post = "paths /api/v1/{namespace}/tasks get", "paths /api/v1/{namespace}/tasks post"
	for _, row := range []struct {
		at, value string // the value that is put there; "" removes what is there
		want      string
	}{
		{"openapi", `"3.0.3"`, `is "3.0.3", want 3.1`},
		{"info title", `""`, "has no title"},
		{"info licence", `{}`, `has "licence", which is not known here`},
		{"paths tasks", `{}`, "does not begin with a slash"},
		{"paths /api/v1/{other}/tasks", `{}`, "is the same path as"},
		{get + " operationId", `"enqueueTask"`, "has the operationId of"},
		{get + " operationId", "", "has no operationId"},
		{get + " parameters 0", `{"name":"space","in":"path","required":true,"schema":{"type":"string"}}`, "declare [space] of the path, which names [namespace]"},
		{get + " parameters 0 required", "", "is in the path and not required"},
		{get + " parameters 1 name", `"limit"`, "is declared twice"},
		{get + " parameters 1 in", `"body"`, "is in body"},
		{get + " parameters 1 description", `""`, "has no description"},
		{get + " parameters 1 schema", "", "is no object"},
		{get + " requestBody", `{"required":true,"content":{"application/json":{"schema":{}}}}`, "has a body"},
		{get + " responses 200", "", "has no response for success"},
		{get + " responses ok", `{"description":"x","content":{"application/json":{"schema":{}}}}`, "is no status"},
		{get + " responses 200 description", `" "`, "has no description"},
		{get + " responses 200 content", `{}`, "has no type of media"},
		{get + " responses 200 content text/html", `{"schema":{}}`, `has "text/html", which is not known here`},
		{get + " parameters 1 in", `"cookie"`, "is in cookie"},
		{get + " security", `[{"key":[]}]`, "is no scheme of the components"},
		{post + " requestBody content application/json schema $ref", `"#/components/schemas/Nothing"`, "refers to #/components/schemas/Nothing, which does not exist"},
		{"components schemas A:b", `{}`, "has a name that no component can have"},
		{"components schemas Extra", `{}`, "is not used"},
		{"components schemas Problem required", `["errer"]`, "requires errer, which is no property"},
		{"components schemas Problem required", `["error","error"]`, "requires error twice"},
		{"components schemas Problem nullable", `true`, `has "nullable", which is not known here`},
		{"components schemas Problem type", `"text"`, "has the type [text]"},
		{"components schemas Problem type", `["object","object"]`, "has the type [object object]"},
		{"components schemas Problem type", `7`, "has the type 7"},
		{"components schemas Problem type", `"string"`, "has properties and is no object"},
		{"components schemas Problem items", `{}`, "has items and is no array"},
		{"components schemas Problem minimum", `true`, "has the minimum true"},
		{"components schemas Problem enum", `[]`, "has the enum []"},
		{"components schemas Problem default", `1`, "has the default 1, which does not fit"},
		{"components schemas Problem properties error properties word contentEncoding", `"hex"`, "has the contentEncoding hex"},
		{"components securitySchemes token type", `"magic"`, "is no scheme of HTTP"},
	} {
		var document map[string]any
		json.Unmarshal(OpenAPI(), &document)
		setAt(t, document, row.at, row.value)
		if faults := strings.Join(openAPIFaults(document), "\n"); !strings.Contains(faults, row.want) {
			t.Errorf("%s = %s: the faults are %q, want %q", row.at, row.value, faults, row.want)
		}
	}
}

// setAt sets a value in a document. The place is names and numbers with spaces between them.
func setAt(t *testing.T, document any, place, value string) {
	t.Helper()
	parts := strings.Fields(place)
	for i, part := range parts {
		last := i == len(parts)-1
		switch at := document.(type) {
		case object:
			switch document = at[part]; {
			case last && value == "":
				delete(at, part)
			case last:
				at[part] = read(value)
			}
		case []any:
			n, _ := strconv.Atoi(part)
			if document = at[n]; last {
				at[n] = read(value)
			}
		default:
			t.Fatalf("%s: nothing is at %s", place, part)
		}
	}
}

func read(text string) (value any) {
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(err)
	}
	return value
}
