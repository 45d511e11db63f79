package duration

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// Duration is a time.Duration in the format of Parse: 500ms, 1h30m, 1d. In JSON it is a string.
// *Duration is a flag.Value and an encoding.TextUnmarshaler.
type Duration time.Duration

const day = 24 * time.Hour

// maxDuration is the greatest whole number of ms that a time.Duration holds: 292 years. It is
// far below 2^53 ms, the limit of a script.
const maxDuration = math.MaxInt64 / time.Millisecond * time.Millisecond

// String returns the duration in the format of Parse, in days, hours, minutes and seconds, without
// units that are 0. A duration that Parse would refuse is formatted as time.Duration formats it.
func (d Duration) String() string {
	rest := time.Duration(d)
	switch {
	case rest == 0:
		return "0s"
	case checkDuration(rest) != "":
		return rest.String()
	case rest < time.Second:
		return fmt.Sprintf("%dms", rest.Milliseconds())
	}
	var b strings.Builder
	for _, unit := range []struct {
		span time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if n := rest / unit.span; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, unit.name)
			rest -= n * unit.span
		}
	}
	if rest > 0 {
		b.WriteString(rest.String()) // under a minute: 4s, 1.5s, 20ms
	}
	return b.String()
}

// Set parses text with Parse, for flag.Value. If Parse returns an error, d is not changed.
func (d *Duration) Set(text string) error {
	parsed, err := Parse(text)
	if err == nil {
		*d = Duration(parsed)
	}
	return err
}

// MarshalText returns the text of String. It returns an error if Parse would refuse the text.
func (d Duration) MarshalText() ([]byte, error) {
	if why := checkDuration(time.Duration(d)); why != "" {
		return nil, refusal.Invalid("duration", "%v %s", time.Duration(d), why)
	}
	return []byte(d.String()), nil
}

// UnmarshalText parses text with Parse.
func (d *Duration) UnmarshalText(text []byte) error { return d.Set(string(text)) }

// UnmarshalJSON parses a JSON string with Parse; null does not change the duration. For a number
// it returns an error that says what to write. The error of encoding/json would not.
func (d *Duration) UnmarshalJSON(text []byte) error {
	s := string(text)
	if s == "null" {
		return nil
	}
	if text[0] != '"' {
		return refuseDuration(s)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	return d.Set(s)
}
