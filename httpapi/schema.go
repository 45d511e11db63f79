package httpapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/internal/vocabulary"
)

// schema is a JSON Schema, of the part that OpenAPI 3.1 and the tests use.
type schema map[string]any

// schemas collects the schemas of named types.
type schemas map[string]schema

// taskNames are the names of a stored task that belong neither to its fields nor to its explanation. Their types are
// in the vocabulary.
const taskNames = `status created_at until limit_at
	started_at epoch worker retries lease_losses completed_at detected_at error last_error reason timed_out timeout_type
	retry_state retry_error hook_of warn_at cancel_at cancel_reason grace_at code progress progress_at overdue
	payload_bytes body_bytes release_reason held held_at held_by children collects
	call cancelled_by journal lost_by late_by counted_as requeued_by suspended_by waiting watched woken
	number of_number definition full_at ready_at attempt_at version recount_again
	owner workflow_run_id index partition of why sentence given_back bound ends_by line wait warnings child_tasks memory`

// storedNames returns the names that a stored task can have. Spans that kinds have no default of are not stored: they become instants.
func storedNames() []string {
	names := strings.Fields(taskNames)
	for i := range field.All {
		if f := &field.All[i]; f.Name != "payload" && (f.Type != field.Span || f.By == field.Kind) {
			names = append(names, f.Name)
		}
	}
	return names
}

// of returns the schema of a type. body is true for types that clients send: then times are numbers of ms too, and
// unknown members are refused.
func (all schemas) of(t reflect.Type, body bool) schema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return schema{"type": "integer", "description": "ms since 1970"}
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[duration.Duration]():
		return schema{"type": "integer", "description": "ms"}
	case reflect.TypeFor[msOrNone]():
		return schema{"type": []string{"integer", "string"}, "description": "ms, or none"}
	case reflect.TypeFor[json.RawMessage]():
		return schema{}
	case reflect.TypeFor[task]():
		return all.name("TaskToEnqueue", schema{"type": "object", "required": []string{"kind"}, "description": "A task, with the names of docs/reference/protocol.md, Tasks in JSON. Its payload is any JSON, or payload_base64",
			"not": schema{"required": []string{"payload", "payload_base64"}}, "properties": schema{"kind": schema{"type": "string"}, "payload": schema{}, "payload_base64": schema{"type": "string", "contentEncoding": "base64"}}})
	case kindBody:
		return all.name("KindBody", all.object(t, true))
	case reflect.TypeFor[*inspect.Whole](), reflect.TypeFor[inspect.Line]():
		return all.name("Task", stored(storedNames()))
	case reflect.TypeFor[definition]():
		return all.name("FlowDefinition", schema{"type": "object", "properties": schema{}, "additionalProperties": true, "description": "A definition of a flow. docs/how-to/flows.md says how to write one"})
	case reflect.TypeFor[events.Event]():
		return all.name("Event", schema{"type": "object", "required": []string{"kind", "at", "partition", "number", "id"}, "additionalProperties": true,
			"description": "docs/reference/events.md lists the kinds and their fields"})
	case reflect.TypeFor[lines.Stored]():
		return schema{"type": "object"}
	case reflect.TypeFor[*inspect.Explanation](), reflect.TypeFor[inspect.Explanation]():
		e := all.object(reflect.TypeFor[inspect.Explanation](), false)
		e["properties"].(schema)["sentence"] = schema{"type": "string"}
		return all.name("Explanation", e)
	}
	return all.plain(t, body)
}

// stored is the schema of a record: a field that is empty is null, and a span can be none.
func stored(fields []string) schema {
	properties := schema{"payload": schema{}, "payload_base64": schema{"type": "string", "contentEncoding": "base64"}, "result": schema{}, "result_base64": schema{"type": "string", "contentEncoding": "base64"}}
	for _, name := range fields {
		kind, _ := vocabulary.Of(name)
		switch kind {
		case vocabulary.Number, vocabulary.Instant:
			properties[name] = schema{"type": []string{"number", "null"}}
		case vocabulary.Span:
			properties[name] = schema{"type": []string{"number", "string", "null"}}
		case vocabulary.Flag:
			properties[name] = schema{"type": "boolean"}
		case vocabulary.List:
			properties[name] = schema{"type": "array"}
		case vocabulary.Object:
			properties[name] = schema{"type": "object"}
		default:
			properties[name] = schema{"type": []string{"string", "object"}} // headers are an object
		}
	}
	if properties["version"] != nil {
		properties["version"] = schema{"type": "string"} // of a definition, beside its node
	}
	return schema{"type": "object", "required": []string{"id", "kind", "queue", "status"}, "properties": properties,
		"description": "docs/reference/keys.md explains the fields of the record, docs/reference/explain.md those of the explanation"}
}

// name adds a schema to the components, and returns a reference to it.
func (all schemas) name(name string, s schema) schema {
	all[name] = s
	return schema{"$ref": "#/components/schemas/" + name}
}

func (all schemas) plain(t reflect.Type, body bool) schema {
	switch t.Kind() {
	case reflect.Pointer:
		inner := all.of(t.Elem(), body)
		if kind, ok := inner["type"].(string); ok && !body {
			inner["type"] = []string{kind, "null"}
		}
		return inner
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Slice:
		return schema{"type": "array", "items": all.of(t.Elem(), body)}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": all.of(t.Elem(), body)}
	case reflect.Struct:
		if t.Name() == "" {
			return all.object(t, body)
		}
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if s, exists := all[name]; !exists || s != nil {
			all[name] = nil // a type that contains itself refers to this unfinished entry
			all.name(name, all.object(t, body))
		}
		return schema{"$ref": "#/components/schemas/" + name}
	}
	panic("httpapi: no schema for " + t.String())
}

func (all schemas) object(t reflect.Type, body bool) schema {
	properties, required := schema{}, []string{}
	all.members(t, body, properties, &required)
	s := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	if body {
		s["additionalProperties"] = false
	}
	return s
}

func (all schemas) members(t reflect.Type, body bool, properties schema, required *[]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		optional := strings.HasPrefix(options, "omit")
		switch {
		case field.Anonymous:
			all.members(field.Type, body, properties, required)
			continue
		case name == "" || name == "-":
			continue
		case field.Type == reflect.TypeFor[[]byte](): // written as JSON, or in base64
			properties[name], properties[name+"_base64"] = schema{}, schema{"type": "string", "contentEncoding": "base64"}
			continue
		case strings.HasSuffix(name, "_base64"):
			properties[name] = schema{"type": "string", "contentEncoding": "base64"}
		default:
			properties[name] = all.of(field.Type, body)
		}
		if !optional {
			*required = append(*required, name)
		}
	}
}
