package plan

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/curfew-dev/curfew/duration"
)

// order is the order of the objects in the reference: those of both spellings, of templates, of graphs, and of calls.
var order = []string{"definition", "inputs", "parameter", "hooks", "hook",
	"spec", "template", "outputs", "arguments", "argument", "dag", "dag node", "task", "executor", "loop", "loop body",
	"node", "action", "implementation", "execution", "transition", "fan_out", "synchronization", "merge",
	"retry", "backoff", "continueOn", "adaptive"}

// Reference returns the part of the reference that is made from the tables: presets, types, and the fields of each object.
func Reference() string {
	var b strings.Builder
	b.WriteString("## Recommended times\n\n`attempt_timeout: preset llm_call` is the longest time of its row. A preset is used only where a definition names it.\n\n" +
		"| Preset | Recommended, in ms | The preset is | Why |\n|---|---|---|---|\n")
	for _, p := range Presets {
		fmt.Fprintf(&b, "| `%s` | %d to %d | %v | %s |\n", p.Name, p.Least.Milliseconds(), p.Most.Milliseconds(), duration.Duration(p.Most), p.Why)
	}
	b.WriteString("\n## Types\n\n| Type | A value |\n|---|---|\n")
	for _, t := range types {
		fmt.Fprintf(&b, "| %s | %s |\n", t.Name, t.Doc)
	}
	b.WriteString("\n## Fields\n\nA field without a default has –. \"That of the kind\" is what `curfew kind set` or a worker has set for the kind of the task.\n")
	for _, shape := range order {
		fmt.Fprintf(&b, "\n### %s\n\n%s| Field | Type | Default | Meaning |\n|---|---|---|---|\n", heading(shape), sentences(shape))
		for _, f := range shapes[shape] {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, typeInWords(f.Type), cell(f.Default), cell(f.Doc))
		}
	}
	return b.String()
}

// heading returns the name of an object as a heading.
func heading(shape string) string {
	if strings.Contains(shape, "_") || shape == "continueOn" {
		return "`" + shape + "`"
	}
	return string(unicode.ToUpper(rune(shape[0]))) + shape[1:]
}

// typeInWords returns a type as the reference writes it, with a link to an object.
func typeInWords(typ string) string {
	element, list := strings.CutPrefix(typ, "[]")
	switch {
	case shapes[element] != nil:
		element = "[" + element + "](#" + strings.ReplaceAll(strings.ToLower(element), " ", "-") + ")"
	case !isNamed(element) && strings.Contains(element, "_") || strings.Contains(element, " or ") && !isNamed(element): // words
		element = "`" + strings.Join(wordsOf(element), "`, `") + "`"
	}
	if list {
		return "list of " + element
	}
	return element
}

func isNamed(typ string) bool {
	_, named := namedTypes()[reference(typ)]
	return named
}

// cell returns a text as a cell of a table. What an expression or a field of a definition is stands in code.
func cell(text string) string {
	if text == "" {
		return "–"
	}
	var words []string
	for i, segment := range strings.Split(text, "`") {
		if i%2 == 0 {
			segment = strings.ReplaceAll(segment, "<", `\<`)
		}
		words = append(words, segment)
	}
	return strings.Join(words, "`")
}

// sentences returns the rules of an object in words.
func sentences(shape string) string {
	code := func(fields, last string) string {
		words := strings.Fields(fields)
		for i := range words {
			words[i] = "`" + words[i] + "`"
		}
		if len(words) == 1 {
			return words[0]
		}
		return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
	}
	var words []string
	rule := rules[shape]
	if rule.needs != "" {
		words = append(words, "It needs "+code(rule.needs, "and")+".")
	}
	if rule.one != "" {
		words = append(words, "It has exactly one of "+code(rule.one, "and")+".")
	}
	for _, f := range shapes[shape] {
		if needs := rule.with[f.Name]; needs != "" {
			words = append(words, fmt.Sprintf("`%s` needs %s.", f.Name, code(needs, "and")))
		}
		if excluded := rule.beside[f.Name]; excluded != "" {
			words = append(words, fmt.Sprintf("`%s` cannot be beside %s.", f.Name, code(excluded, "or")))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, "\n") + "\n\n"
}
