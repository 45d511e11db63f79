package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// validator checks values with a JSON Schema. It knows the keywords that Schema uses, and panics at any other.
type validator struct {
	defs     map[string]any
	patterns map[string]*regexp.Regexp
}

// wrong returns where a value does not fit, "" if it fits.
func (v *validator) wrong(schema any, value any, at string) string {
	if yes, is := schema.(bool); is {
		if !yes {
			return at + " must not be there"
		}
		return ""
	}
	s := schema.(map[string]any)
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if why := v.keyword(s, keyword, value, at); why != "" {
			return why
		}
	}
	return ""
}

func (v *validator) fits(schema, value any) bool { return v.wrong(schema, value, "") == "" }

// holding returns how many of some schemas a value fits.
func (v *validator) holding(schemas any, value any) (n int) {
	for _, s := range schemas.([]any) {
		if v.fits(s, value) {
			n++
		}
	}
	return n
}

func (v *validator) keyword(s map[string]any, keyword string, value any, at string) string {
	is := s[keyword]
	no := func(failed bool) string {
		if !failed {
			return ""
		}
		return fmt.Sprintf("%s: %v is not %s %v", at, value, keyword, is)
	}
	switch keyword {
	case "description", "then":
		return ""
	case "$ref":
		to, known := v.defs[strings.TrimPrefix(is.(string), "#/$defs/")]
		if !known {
			panic("there is no " + is.(string))
		}
		return v.wrong(to, value, at)
	case "allOf":
		for _, one := range is.([]any) {
			if why := v.wrong(one, value, at); why != "" {
				return why
			}
		}
		return ""
	case "anyOf":
		return no(v.holding(is, value) == 0)
	case "oneOf":
		return no(v.holding(is, value) != 1)
	case "not":
		return no(v.fits(is, value))
	case "if":
		if v.fits(is, value) {
			return v.wrong(s["then"], value, at)
		}
		return ""
	case "const":
		return no(!reflect.DeepEqual(is, value))
	case "enum":
		return no(!slices.ContainsFunc(is.([]any), func(one any) bool { return reflect.DeepEqual(one, value) }))
	case "type":
		return no(!hasType(is, value))
	}
	switch value := value.(type) {
	case string:
		return v.text(keyword, is, value, no)
	case float64:
		switch keyword {
		case "minimum":
			return no(value < is.(float64))
		case "maximum":
			return no(value > is.(float64))
		}
	case []any:
		return v.list(keyword, is, value, at, no)
	case map[string]any:
		return v.object(s, keyword, value, at, no)
	}
	known(keyword)
	return ""
}

func (v *validator) text(keyword string, is any, value string, no func(bool) string) string {
	switch keyword {
	case "minLength":
		return no(utf8.RuneCountInString(value) < int(is.(float64)))
	case "maxLength":
		return no(utf8.RuneCountInString(value) > int(is.(float64)))
	case "pattern":
		p := is.(string)
		if v.patterns[p] == nil {
			v.patterns[p] = regexp.MustCompile(p)
		}
		return no(!v.patterns[p].MatchString(value))
	}
	known(keyword)
	return ""
}

func (v *validator) list(keyword string, is any, value []any, at string, no func(bool) string) string {
	switch keyword {
	case "items":
		for i, item := range value {
			if why := v.wrong(is, item, fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
		return ""
	case "minItems":
		return no(len(value) < int(is.(float64)))
	case "uniqueItems":
		for i := range value {
			if slices.ContainsFunc(value[:i], func(other any) bool { return reflect.DeepEqual(other, value[i]) }) {
				return no(true)
			}
		}
		return ""
	}
	known(keyword)
	return ""
}

func (v *validator) object(s map[string]any, keyword string, value map[string]any, at string, no func(bool) string) string {
	is := s[keyword]
	lacks := func(name any) bool { _, there := value[name.(string)]; return !there }
	switch keyword {
	case "properties":
		for _, name := range slices.Sorted(maps.Keys(is.(map[string]any))) {
			if member, there := value[name]; there {
				if why := v.wrong(is.(map[string]any)[name], member, at+"."+name); why != "" {
					return why
				}
			}
		}
		return ""
	case "additionalProperties":
		for name := range value {
			if _, there := s["properties"].(map[string]any)[name]; !there && is == false {
				return at + "." + name + " is not described"
			}
		}
		return ""
	case "required":
		return no(slices.ContainsFunc(is.([]any), lacks))
	case "dependentRequired":
		for name, needs := range is.(map[string]any) {
			if !lacks(name) && slices.ContainsFunc(needs.([]any), lacks) {
				return no(true)
			}
		}
		return ""
	case "dependentSchemas":
		for name, then := range is.(map[string]any) {
			if !lacks(name) && !v.fits(then, value) {
				return no(true)
			}
		}
		return ""
	}
	known(keyword)
	return ""
}

// known panics if a keyword is none that the validator knows for another type of values.
func known(keyword string) {
	if !slices.Contains([]string{"minimum", "maximum", "minLength", "maxLength", "pattern", "items", "minItems", "uniqueItems",
		"properties", "additionalProperties", "required", "dependentRequired", "dependentSchemas"}, keyword) {
		panic("the validator does not know the keyword " + keyword)
	}
}

func hasType(types, value any) bool {
	if one, is := types.(string); is {
		types = []any{one}
	}
	return slices.ContainsFunc(types.([]any), func(name any) bool {
		switch value := value.(type) {
		case nil:
			return name == "null"
		case bool:
			return name == "boolean"
		case string:
			return name == "string"
		case float64:
			return name == "number" || name == "integer" && value == math.Trunc(value)
		case []any:
			return name == "array"
		}
		return name == "object"
	})
}

// newValidator returns a validator with the schema of definitions, and that schema.
func newValidator() (*validator, map[string]any) {
	var s map[string]any
	if err := json.Unmarshal(Schema(), &s); err != nil {
		panic(err)
	}
	defs := s["$defs"].(map[string]any)
	return &validator{defs, map[string]*regexp.Regexp{}}, defs["definition"].(map[string]any)
}
