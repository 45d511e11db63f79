package plan

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// schema is a JSON Schema, or a part of one.
type schema = map[string]any

// Schema returns a JSON Schema (draft 2020-12) of definitions in both spellings.
//
// It describes each object by itself: its fields, their types and ranges, required fields, and
// fields that exclude each other. Only Read makes the checks that need the whole definition: unknown
// names, cycles, expressions, and runs without end.
func Schema() []byte {
	definitions := namedTypes()
	for shape := range shapes {
		definitions[reference(shape)] = objectSchema(shape)
	}
	text, err := json.MarshalIndent(schema{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "A definition of a flow",
		"description": "docs/reference/flow.md describes each field. `curfew flow check` also finds what a schema cannot say.",
		"$ref":        "#/$defs/definition",
		"$defs":       definitions,
	}, "", "  ")
	if err != nil {
		panic(err) // it has texts, numbers, lists and maps alone
	}
	return append(text, '\n')
}

// reference returns the name of a shape or a type in the schema.
func reference(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, ",", ""), " ", "_")
}

func ref(name string) schema { return schema{"$ref": "#/$defs/" + reference(name)} }

// durationPattern matches the texts that package duration accepts.
const durationPattern = `^(([0-9]+\.?[0-9]*|\.[0-9]+)d)?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`

// namedTypes returns the schemas of the types that have a name.
func namedTypes() schema {
	matches := func(pattern string) schema { return schema{"type": "string", "pattern": pattern} }
	presets := []string{}
	for _, p := range Presets {
		presets = append(presets, "preset "+p.Name)
	}
	none := schema{"type": "null"}
	root := schema{
		"text":                   schema{"type": "string", "minLength": 1, "maxLength": maxTextBytes},
		"name":                   matches(goodName.String()),
		"node name":              schema{"$ref": "#/$defs/name", "not": schema{"pattern": "^s-|__"}},
		"names":                  schema{"type": "array", "items": ref("name"), "uniqueItems": true},
		"kind":                   matches(kindName.String()),
		"queue":                  matches(queueName.String()),
		"version":                matches(goodVersion.String()),
		"bool":                   schema{"type": "boolean"},
		"time":                   schema{"anyOf": []any{schema{"type": "string", "pattern": durationPattern, "minLength": 2, "maxLength": 64}, schema{"enum": presets}}},
		"time or null":           schema{"anyOf": []any{ref("time"), none}},
		"time, adaptive or null": schema{"anyOf": []any{ref("time"), schema{"const": "adaptive"}, none}},
		"ms or null":             schema{"type": []string{"integer", "null"}, "minimum": 1, "maximum": maxSpan.Milliseconds()},
		"value":                  schema{},
		"expression":             ref("text"),
		"strategy": schema{"anyOf": []any{schema{"enum": []string{"all", "any"}},
			schema{"type": "object", "required": []string{"m_of_n"}, "additionalProperties": false, "properties": schema{"m_of_n": schema{"type": "integer", "minimum": 1, "maximum": maxNodes}}}}},
	}
	for _, prefix := range []string{"_branch.output", "state"} {
		root["path below "+prefix] = matches(`^` + regexp.QuoteMeta(prefix) + `(\._?[A-Za-z][A-Za-z0-9_-]{0,59})*$`)
	}
	named := schema{}
	for name, s := range root {
		named[reference(name)] = s
	}
	return named
}

// ofType returns the schema of a type.
func ofType(typ string) schema {
	if element, ok := strings.CutPrefix(typ, "[]"); ok {
		return schema{"type": "array", "items": ref(element)}
	}
	if low, high, integer := rangeOf(typ); high > 0 {
		kind := "number"
		if integer {
			kind = "integer"
		}
		return schema{"type": kind, "minimum": low, "maximum": high}
	}
	if _, named := namedTypes()[reference(typ)]; named || shapes[typ] != nil {
		return ref(typ)
	}
	return schema{"enum": wordsOf(typ)}
}

// objectSchema returns the schema of a shape.
func objectSchema(shape string) schema {
	properties := schema{}
	for _, f := range shapes[shape] {
		s := ofType(f.Type)
		s["description"] = f.Doc
		if f.Default != "" {
			s["description"] = f.Doc + ". Default: " + f.Default
		}
		properties[f.Name] = s
	}
	if list := map[string]string{"dag": "tasks", "definition": "nodes"}[shape]; list != "" {
		properties[list].(schema)["minItems"] = 1
	}
	s, rule := schema{"type": "object", "properties": properties, "additionalProperties": false}, rules[shape]
	if rule.needs != "" {
		s["required"] = strings.Fields(rule.needs)
	}
	if rule.one != "" {
		var alternatives []any
		for _, name := range strings.Fields(rule.one) {
			alternatives = append(alternatives, schema{"required": []string{name}})
		}
		s["oneOf"] = alternatives
	}
	if len(rule.with) > 0 {
		with := schema{}
		for name, needs := range rule.with {
			with[name] = strings.Fields(needs)
		}
		s["dependentRequired"] = with
	}
	if len(rule.beside) > 0 {
		excluded := schema{}
		for name, names := range rule.beside {
			excluded[name] = without(strings.Fields(names)...)
		}
		s["dependentSchemas"] = excluded
	}
	if all := extraRules(shape); len(all) > 0 {
		s["allOf"] = all
	}
	return s
}

// without returns the schema of objects that do not have some fields.
func without(names ...string) schema {
	none := schema{}
	for _, name := range names {
		none[name] = false
	}
	return schema{"properties": none}
}

// where returns the schema of objects in which a field is there and has a schema.
func where(field string, is schema) schema {
	return schema{"required": []string{field}, "properties": schema{field: is}}
}

// extraRules returns the rules of a shape that the table of fields does not contain.
func extraRules(shape string) (all []any) {
	switch shape {
	case "definition": // what it says cannot be said by its spec again
		for _, f := range [][2]string{{"timeout", "timeout"}, {"timeout_ms", "timeout"}, {"on_timeout", "on_timeout"}, {"inputs", "inputs"}, {"hooks", "hooks"}} {
			all = append(all, schema{"if": schema{"required": []string{f[0]}}, "then": schema{"properties": schema{"spec": without(f[1])}}})
		}
	case "template":
		named := schema{"required": []string{"name"}}
		all = append(all, schema{"anyOf": []any{named, where("dag", named), where("loop", named)}})
	case "executor":
		for _, kind := range builtIn(shape) {
			all = append(all, schema{"if": where("type", kind.is), "then": onlyOptions(shape, kind.options)})
		}
	case "action":
		for _, kind := range builtIn(shape) {
			then := schema{"properties": schema{"implementation": onlyOptions("implementation", kind.options)}}
			if slices.ContainsFunc(kind.options, needed) {
				then["required"] = []string{"implementation"}
			}
			all = append(all, schema{"if": where("kind", kind.is), "then": then})
		}
	}
	if hasField(shape, "adaptive") {
		adaptive := schema{"const": "adaptive"}
		either := schema{"anyOf": []any{where("timeout", adaptive), where("attempt_timeout", adaptive)}}
		needs := schema{"required": []string{"adaptive"}}
		all = append(all, schema{"if": either, "then": needs}, schema{"if": needs, "then": either})
	}
	return all
}

// builtInKind is a type of an executor, or all that are no built-in one, with the options that it can have.
type builtInKind struct {
	is      schema
	options []string
}

func builtIn(shape string) (all []builtInKind) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if name != "" {
			names = append(names, name)
			all = append(all, builtInKind{schema{"const": name}, options[name]})
		}
	}
	if shape == "action" {
		names = append(names, updateContext)
		all = append(all, builtInKind{schema{"const": updateContext}, options[Set]})
	}
	return append(all, builtInKind{schema{"not": schema{"enum": names}}, options[""]})
}

func needed(option string) bool { return strings.HasPrefix(option, "+") }

// onlyOptions returns the schema of executors or implementations that have only some of the fields.
func onlyOptions(shape string, may []string) schema {
	if shape == "implementation" {
		may = ofImplementation(may)
	}
	var needs, none []string
	for _, name := range may {
		if needed(name) {
			needs = append(needs, name[1:])
		}
	}
	for _, f := range shapes[shape] {
		if f.Name != "type" && !slices.Contains(may, f.Name) && !slices.Contains(needs, f.Name) {
			none = append(none, f.Name)
		}
	}
	s := without(none...)
	if len(needs) > 0 {
		s["required"] = needs
	}
	return s
}
