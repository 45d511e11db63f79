package duration

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// Duration is a time.Duration in the words of Parse: 500ms, 1h30m, 1d. In
// JSON it is a string. It is a flag.Value, and what encoding.TextUnmarshaler reads.
type Duration time.Duration

const day = 24 * time.Hour

// maxDuration is the longest whole number of ms that a time.Duration holds: 292 years.
// It is far below maxSpan, so that nothing that parses is too long for a script.
const maxDuration = math.MaxInt64 / time.Millisecond * time.Millisecond

// String is what Parse reads back, in its shortest form without fractions of
// an hour. What Parse refuses is printed as time.Duration prints it.
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

// Set is String's reverse, for flag.Value. Its error is Parse's.
func (d *Duration) Set(text string) error {
	parsed, err := Parse(text)
	if err == nil {
		*d = Duration(parsed)
	}
	return err
}

// MarshalText refuses what Parse would refuse to read back.
func (d Duration) MarshalText() ([]byte, error) {
	if why := checkDuration(time.Duration(d)); why != "" {
		return nil, refusal.Invalid("duration", "%v %s", time.Duration(d), why)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what Parse reads.
func (d *Duration) UnmarshalText(text []byte) error { return d.Set(string(text)) }

// UnmarshalJSON takes a string; null leaves the duration as it is. It is here for
// numbers, which encoding/json would refuse without a word on what to write.
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
