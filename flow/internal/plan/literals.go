package plan

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
)

// checkLiteral checks an option of an action that no expression computes, so that each run of the definition would fail at it.
func (r *reader) checkLiteral(kind, option string, t *tree) {
	if text, _ := t.value.(string); strings.Contains(text, "{{") {
		return
	}
	switch {
	case kind == Sleep && option == "duration":
		if _, err := SleepTime(t.plain()); err != nil {
			r.at(t, "cannot be the time of a sleep: %v", err)
		}
	case kind == HTTPRequest && option == "url":
		text, _ := t.value.(string)
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			r.at(t, "must be an address that begins with http:// or https://, and has a host")
		}
	}
}

// SleepTime reads the duration of a sleep: a text such as 10s, or a number of ms.
func SleepTime(v any) (d time.Duration, err error) {
	switch v := v.(type) {
	case string:
		d, err = duration.Parse(v)
	case int:
		d = time.Duration(min(v, int(maxSpan.Milliseconds())+1)) * time.Millisecond
	case float64:
		d = time.Duration(min(v, float64(maxSpan.Milliseconds())+1) * float64(time.Millisecond))
	default:
		return 0, fmt.Errorf("the duration of a sleep must be a text such as 10s, or a number of ms, and is %v", v)
	}
	if err == nil && (d < time.Millisecond || d > maxSpan) {
		err = errors.New("the duration of a sleep must be from 1ms to 10 years")
	}
	return d, err
}
