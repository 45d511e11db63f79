package plan

import (
	"fmt"
	"regexp"
	"strings"
)

// types are the named types of fields, with their descriptions.
var types = []struct{ Name, Doc string }{
	{"text", "a text, not empty, of up to 4096 bytes"},
	{"name", "a text of 1 to 60 of `A-Z a-z 0-9 _ -` that begins with a letter"},
	{"node name", "a name that does not begin with `s-` and has no `__`"},
	{"names", "a list of names, each once"},
	{"kind", "the kind of a task: 1 to 128 of `A-Z a-z 0-9 . _ - : /`, the first a letter or a digit"},
	{"queue", "a queue: 1 to 128 of `A-Z a-z 0-9 . _ -`, the first a letter or a digit"},
	{"version", "a text of 1 to 64 of `A-Z a-z 0-9 . _ -`, the first a letter or a digit"},
	{"number", "a whole number in a range"},
	{"fraction", "a number in a range"},
	{"bool", "`true` or `false`"},
	{"time", "a text with a number and a unit: `500ms`, `30s`, `5m`, `2h`, `1d`, `1h30m`; from 1 ms to 10 years. Or `preset NAME`, one of the [recommended times](#recommended-times)"},
	{"time or null", "a time, or `null` for no limit"},
	{"time, adaptive or null", "the same, or `adaptive`: the figures of the kind decide, as the field `adaptive` says"},
	{"ms or null", "a whole number of ms from 1 to 315360000000, or `null` for no limit"},
	{"value", "any value of JSON. Its texts can have expressions between `{{` and `}}`"},
	{"expression", "an expression, without `{{`"},
	{"path below state", "names with dots between them, the first of them `state`: `state.results`. The same for `_branch.output`"},
	{"strategy", "`all`, `any` or `{\"m_of_n\": number}`"},
}

// typeRange matches the type of a number in a range.
var typeRange = regexp.MustCompile(`^(number|fraction) (\d+) to (\d+)$`)

// rangeOf returns the range of a numeric type, and whether its numbers are integers.
func rangeOf(typ string) (least, most int, whole bool) {
	if m := typeRange.FindStringSubmatch(typ); m != nil {
		fmt.Sscan(m[2], &least)
		fmt.Sscan(m[3], &most)
		whole = m[1] == "number"
	}
	return least, most, whole
}

// wordsOf returns the words of a type that is a list of them: fail or retry.
func wordsOf(typ string) []string {
	return strings.Split(strings.ReplaceAll(typ, " or ", ", "), ", ")
}

// rule says which fields of an object must be there, and which cannot be together. Fields have spaces between them.
//
// Read checks the same with sentences of its own. The schema is made of the rules, and a test compares the two.
type rule struct {
	needs  string            // all of these
	one    string            // exactly one of these
	with   map[string]string // a field, and those that it needs
	beside map[string]string // a field, and those that cannot be beside it
}

var oneClockOrTwo = map[string]string{"timeout_ms": "attempt_timeout queue_timeout"}

// rules lists the rules of each object.
var rules = map[string]rule{
	"definition":      {one: "spec nodes", beside: map[string]string{"spec": "transitions actions initial output", "timeout": "timeout_ms"}},
	"spec":            {needs: "entrypoint templates"},
	"hook":            {needs: "kind"},
	"parameter":       {needs: "name"},
	"argument":        {needs: "name value"},
	"template":        {one: "dag loop task executor", with: map[string]string{"outputs": "dag"}, beside: map[string]string{"dag": "attempt_timeout queue_timeout", "loop": "attempt_timeout queue_timeout"}},
	"dag":             {needs: "tasks"},
	"dag node":        {needs: "name", one: "template executor", beside: oneClockOrTwo},
	"retry":           {needs: "limit"},
	"adaptive":        {needs: "least most"},
	"backoff":         {needs: "delay"},
	"task":            {one: "template executor", beside: map[string]string{"executor": "inputs"}},
	"executor":        {needs: "type"},
	"loop":            {needs: "task", one: "items until", with: map[string]string{"until": "limit"}, beside: map[string]string{"until": "parallel"}},
	"loop body":       {one: "template executor", beside: oneClockOrTwo},
	"node":            {needs: "id action_id", beside: oneClockOrTwo},
	"action":          {needs: "id kind"},
	"transition":      {needs: "from to", with: map[string]string{"fan_out": "id"}},
	"fan_out":         {one: "spawn_count items"},
	"synchronization": {needs: "strategy sibling_group", beside: map[string]string{"timeout": "timeout_ms"}},
}
