package httpapi

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// values are the parameters of a query, by name. Those that were not given have their default.
type values map[string]any

func (v values) text(name string) string { s, _ := v[name].(string); return s }

func (v values) number(name string) int { n, _ := v[name].(int64); return int(n) }

func (v values) span(name string) time.Duration { d, _ := v[name].(time.Duration); return d }

func (v values) instant(name string) time.Time { at, _ := v[name].(time.Time); return at }

func (v values) flag(name string) bool { b, _ := v[name].(bool); return b }

func (v values) list(name string) []string { l, _ := v[name].([]string); return l }

// readQuery reads the query of a request. It refuses unknown parameters, and those that are given twice.
func readQuery(raw string, params []param) (values, *failure) {
	parameters, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fail(http.StatusBadRequest, "invalid", "the query is not valid: names and values must be encoded, and stand as name=value with & between them")
	}
	result := values{}
	for name, texts := range parameters {
		at := slices.IndexFunc(params, func(p param) bool { return p.Name == name })
		if at < 0 {
			return nil, unknownName(name, namesOf(params))
		}
		p := params[at]
		if len(texts) > 1 && p.Type != list {
			return nil, wrong(name, "is given more than once")
		}
		for _, text := range texts {
			switch {
			case text == "":
				return nil, wrong(name, "must not be empty: leave it out")
			case !utf8.ValidString(text):
				return nil, wrong(name, "must be UTF-8")
			}
		}
		value, f := p.read(strings.Join(texts, ","))
		if f != nil {
			return nil, f
		}
		result[name] = value
	}
	for _, p := range params {
		if _, ok := result[p.Name]; !ok && p.Default != "" {
			result[p.Name], _ = p.read(p.Default)
		}
	}
	return result, nil
}

func namesOf(params []param) []string {
	var names []string
	for _, p := range params {
		names = append(names, p.Name)
	}
	return names
}

// unknownName returns the failure for a parameter that there is not.
func unknownName(name string, known []string) *failure {
	hint := names.Hint(name, known)
	if len(known) == 0 {
		hint = ": there are none here"
	}
	return fail(http.StatusBadRequest, "invalid", "%q is not the name of a parameter%s", refusal.Clip(name), hint).of(cmp.Or(refusal.Clip(name), "name"))
}

// read returns the value that a text means.
func (p param) read(text string) (any, *failure) {
	quoted := strconv.Quote(refusal.Clip(text))
	switch p.Type {
	case number:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < p.Least || n > p.Most {
			return nil, wrong(p.Name, "%s must be a whole number from %d to %d", quoted, p.Least, p.Most)
		}
		return n, nil
	case flag:
		if text != "true" && text != "false" {
			return nil, wrong(p.Name, "%s must be true or false", quoted)
		}
		return text == "true", nil
	case span:
		d, err := duration.Parse(text)
		if err != nil || d < 0 || d > longestSpan {
			return nil, wrong(p.Name, "%s must be a duration, such as 30s", quoted)
		}
		return d, nil
	case instant:
		return p.instant(text)
	case list:
		words := strings.Split(text, ",")
		for _, word := range words {
			if f := p.checkWord(word); f != nil {
				return nil, f
			}
		}
		return words, nil
	}
	return text, p.checkWord(text)
}

func (p param) checkWord(word string) *failure {
	if p.Words != nil && !slices.Contains(p.Words, word) {
		return wrong(p.Name, "%q must be one of %s", refusal.Clip(word), strings.Join(p.Words, ", "))
	}
	return nil
}

// instant reads ms since 1970, RFC 3339, or a span before now on the clock of this server.
func (p param) instant(text string) (any, *failure) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && len(text) >= 10 && ms > 0 {
		return time.UnixMilli(ms), nil
	}
	ago, err := duration.Parse(text)
	if err != nil || ago < 0 || ago > longestSpan {
		return nil, wrong(p.Name, "%q must be an instant in ms since 1970, or such as 2026-11-22T10:00:00Z, or a duration before now, such as 1h", refusal.Clip(text))
	}
	return time.Now().Add(-ago), nil
}
