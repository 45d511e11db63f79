package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// OpenAPI returns the description of all routes as an OpenAPI 3.1 document. `make docs` writes it to docs/reference/openapi.json.
func OpenAPI() []byte {
	text, err := json.MarshalIndent(openAPI(), "", "  ")
	if err != nil {
		panic(err) // it has texts, numbers, lists and maps alone
	}
	return append(text, '\n')
}

func openAPI() schema {
	types, paths := schemas{}, schema{}
	types.of(reflect.TypeFor[Problem](), false)
	for _, r := range table() {
		path := "/api/v1/{namespace}/" + r.Path
		if paths[path] == nil {
			paths[path] = schema{}
		}
		paths[path].(schema)[strings.ToLower(r.Method)] = r.operation(types)
	}
	for path, summary := range map[string]string{"/healthz": "Says whether the last read of Redis was in time", "/readyz": "Says whether the server can serve requests"} {
		paths[path] = schema{"get": schema{"operationId": strings.Trim(path, "/"), "summary": summary, "security": []any{}, "responses": withProblems(schema{
			"200": content("yes", types.of(reflect.TypeFor[health](), false)), "503": content("no", types.of(reflect.TypeFor[health](), false))}, 403, 405, 500)}}
	}
	paths["/metrics"] = schema{"get": schema{"operationId": "metrics", "summary": "Returns the metrics for Prometheus", "description": "Needs the role read. docs/reference/metrics.md lists the metrics.",
		"responses": withProblems(schema{"200": schema{"description": "OK", "content": schema{"text/plain": plainText, "application/openmetrics-text": plainText}}}, 401, 403, 405, 429, 500)}}
	return schema{
		"openapi": "3.1.0",
		"info":    schema{"title": "Curfew", "version": "1", "description": "Tasks with deadlines, over HTTP. docs/how-to/http.md says how to use it."},
		"paths":   paths,
		"components": schema{"schemas": types, "securitySchemes": schema{
			"token":    schema{"type": "http", "scheme": "bearer"},
			"password": schema{"type": "http", "scheme": "basic"},
		}},
		"security": []any{schema{"token": []string{}}, schema{"password": []string{}}, schema{}},
	}
}

func content(description string, s schema) schema {
	return schema{"description": description, "content": schema{"application/json": schema{"schema": s}}}
}

// plainText is content that has no structure in JSON.
var plainText = schema{"schema": schema{"type": "string"}}

// withProblems adds the responses to which the server answers with an error.
func withProblems(responses schema, statuses ...int) schema {
	for _, status := range statuses {
		responses[strconv.Itoa(status)] = content(http.StatusText(status), schema{"$ref": "#/components/schemas/Problem"})
	}
	return responses
}

// variables returns the names of the variables in the path.
func (r *route) variables() []string {
	var names []string
	for segment := range strings.SplitSeq("{namespace}/"+r.Path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

func (r *route) operation(all schemas) schema {
	parameters := []schema{}
	for _, name := range r.variables() {
		parameters = append(parameters, schema{"name": name, "in": "path", "required": true, "schema": schema{"type": "string"}})
	}
	for _, p := range r.Query {
		parameters = append(parameters, schema{"name": p.Name, "in": "query", "description": p.Doc, "schema": p.schema()})
	}
	responses := withProblems(schema{}, r.failures()...)
	for _, status := range r.Status {
		response := content(http.StatusText(status), all.of(reflect.TypeOf(r.Answer), false))
		if r.Stream {
			response["content"].(schema)["text/event-stream"] = plainText
		}
		responses[strconv.Itoa(status)] = response
	}
	if r.Stream {
		parameters = append(parameters, schema{"name": lastEventID, "in": "header", "schema": schema{"type": "string"},
			"description": "with Accept: text/event-stream: the id of the last event that was received; the stream continues behind it, and after does not count"})
	}
	o := schema{"operationId": r.ID, "summary": r.Summary, "description": "Needs the role " + string(r.Role) + ".", "tags": []string{r.group()}, "parameters": parameters, "responses": responses}
	if r.Body != nil {
		media := schema{"application/json": schema{"schema": all.of(reflect.TypeOf(r.Body), true)}}
		if _, ok := r.Body.(definition); ok {
			media["application/yaml"] = plainText
		}
		o["requestBody"] = schema{"required": !r.Bare, "content": media}
	}
	return o
}

// group is the first part of the path.
func (r *route) group() string {
	name, _, _ := strings.Cut(r.Path, "/")
	return name
}

func (p param) schema() schema {
	s := schema{"type": "string"}
	switch p.Type {
	case number:
		s = schema{"type": "integer", "minimum": p.Least, "maximum": p.Most}
		if n, err := strconv.Atoi(p.Default); err == nil {
			s["default"] = n
		}
	case flag:
		s = schema{"type": "boolean"}
	case list:
		s = schema{"type": "array", "items": schema{"type": "string"}}
		if p.Words != nil {
			s["items"] = schema{"type": "string", "enum": p.Words}
		}
	}
	return s
}

// Reference returns the page docs/reference/http.md, which `make docs` writes.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# The HTTP API

` + "`make docs`" + ` writes this page from the table of all routes. [openapi.json](openapi.json) says the same for programs, with the types of
bodies and answers. [how-to/http.md](../how-to/http.md) says how to use the API.

All paths begin with ` + "`/api/v1/NAMESPACE/`" + `. ` + "`/healthz`, `/readyz` and `/metrics`" + ` stand beside them.

A member of a body that is null counts as one that is left out. Payloads, results, parameters and definitions may hold null.

## Errors

The body of each error is ` + "`{\"error\":{\"word\":\"not_found\",\"sentence\":\"…\",\"field\":\"id\"}}`" + `. Programs act on the status and the word.

| Status | Words |
|---|---|
`)
	byStatus := map[int][]string{401: {"unauthorized"}, 403: {"forbidden", "cross_site", "wrong_host"}, 404: {"no_route"}, 405: {"no_method"}, 408: {"slow_body"}, 409: {"ended", "not_suspended"}, 410: {"set_back", "trimmed"},
		413: {"too_large"}, 415: {"not_json"}, 429: {"too_many", "queue_full"}, 500: {"internal"}, 503: {"busy", "misconfigured"}}
	for _, row := range words {
		if !slices.Contains(byStatus[row.status], row.word) {
			byStatus[row.status] = append(byStatus[row.status], row.word)
		}
	}
	for status := 400; status < 600; status++ {
		if list := byStatus[status]; list != nil {
			fmt.Fprintf(&b, "| %d %s | `%s` |\n", status, http.StatusText(status), strings.Join(list, "`, `"))
		}
	}
	b.WriteString("\n## Roles\n\nEach role includes read, and operate includes all.\n\n| Role | May |\n|---|---|\n| read | see tasks, queues, kinds, workers, agents, flows, events and metrics |\n| produce | enqueue, cancel and retry tasks, start and resume runs of flows, settle promises, send signals |\n| work | run tasks and agents |\n| operate | control queues, kinds and workers, store definitions of flows, delete records, change many tasks at once |\n")
	group := ""
	for _, r := range byGroup() {
		if r.group() != group {
			group = r.group()
			fmt.Fprintf(&b, "\n## %s\n", strings.ToUpper(group[:1])+group[1:])
		}
		r.describe(&b)
	}
	return b.String()
}

func byGroup() []route {
	routes := table()
	slices.SortStableFunc(routes, func(a, b route) int { return strings.Compare(a.group(), b.group()) })
	return routes
}

func (r *route) describe(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s %s\n\n%s.\n\n", r.Method, r.Path, filled(r.Summary, ""))
	fmt.Fprintf(b, "- role: %s\n", r.Role)
	for _, p := range r.Query {
		about := string(p.Type)
		if p.Type == number {
			about = fmt.Sprintf("%d to %d", p.Least, p.Most)
		}
		if p.Default != "" {
			about += ", default " + p.Default
		}
		fmt.Fprintf(b, "- `%s` (%s): %s\n", p.Name, about, p.Doc)
	}
	if r.Body != nil {
		fmt.Fprintln(b, filled("- body: "+membersInWords(reflect.TypeOf(r.Body)), "  "))
	}
	if r.Stream {
		fmt.Fprintln(b, filled("- header `"+lastEventID+"`, for a stream: the id of the last event that was received", "  "))
	}
	var statuses []string
	for _, status := range slices.Concat(r.Status, r.failures()[len(every):]) {
		statuses = append(statuses, strconv.Itoa(status))
	}
	fmt.Fprintf(b, "- status: %s\n", strings.Join(statuses, ", "))
}

// membersInWords names the members of a body.
func membersInWords(t reflect.Type) string {
	if t == reflect.TypeFor[task]() {
		return "a task, with the names of [protocol.md](protocol.md), \"Tasks in JSON\""
	}
	if t == reflect.TypeFor[definition]() {
		return "a definition, in JSON, or in YAML with `Content-Type: application/yaml`"
	}
	var list []string
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name = "`" + name + "`"; !strings.HasPrefix(options, "omit") {
			name += " (needed)"
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

// filled breaks a text into lines of up to 138 characters. Further lines begin with indent.
func filled(text, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > 138:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
