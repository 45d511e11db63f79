package app

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/field"
)

// DurationFlag returns a flag for durations in Curfew's form, with days, whose errors contain an
// example. cli.DurationFlag has neither.
func DurationFlag(name string, value time.Duration, usage string) cli.Flag {
	usage, defaultText := splitDefault(usage)
	return &cli.GenericFlag{Name: name, Value: newDuration(value), Usage: usage, DefaultText: defaultText}
}

// LimitFlag is a DurationFlag that can be none, too: DurationOf returns field.None.
func LimitFlag(name, usage string) cli.Flag {
	usage, defaultText := splitDefault(usage)
	return &cli.GenericFlag{Name: name, Value: new(limit), Usage: usage, DefaultText: defaultText}
}

// limit is the value of a LimitFlag.
type limit struct{ duration.Duration }

// Set parses a duration or none.
func (l *limit) Set(text string) error {
	if text == "none" {
		l.Duration = duration.Duration(field.None)
		return nil
	}
	return l.Duration.Set(text)
}

// String returns none, or the duration.
func (l *limit) String() string {
	if time.Duration(l.Duration) == field.None {
		return "none"
	}
	return l.Duration.String()
}

// splitDefault splits the description of the default, such as " (default: no limit)", off a usage,
// because the library would add the zero value to it.
func splitDefault(usage string) (rest, text string) {
	rest, text, _ = strings.Cut(usage, " (default: ")
	return rest, strings.TrimSuffix(text, ")")
}

func newDuration(value time.Duration) *duration.Duration {
	d := duration.Duration(value)
	return &d
}

// DurationOf returns the value of a DurationFlag or a LimitFlag, or 0 if the command has no such flag.
func DurationOf(c *cli.Context, name string) time.Duration {
	switch d := c.Generic(name).(type) {
	case *duration.Duration:
		return time.Duration(*d)
	case *limit:
		return time.Duration(d.Duration)
	}
	return 0
}

// IsDuration reports whether a flag takes a duration.
func IsDuration(f *cli.GenericFlag) bool {
	switch f.Value.(type) {
	case *duration.Duration, *limit:
		return true
	}
	return false
}

// ChoiceFlag returns a flag whose value is one of several words.
func ChoiceFlag(name, value, usageText string, choices ...string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Value: value, Usage: usageText, Action: func(_ *cli.Context, given string) error {
		if !slices.Contains(choices, given) {
			return Usage("%s %q must be %s", Dashed(name), given, OneOf(choices))
		}
		return nil
	}}
}

// ChoicesOf returns the words that a ChoiceFlag accepts, nil for another flag. It takes them from
// the flag's error for an invalid word.
func ChoicesOf(f *cli.StringFlag) []string {
	if f.Action == nil {
		return nil
	}
	err := f.Action(nil, "\x00")
	if err == nil {
		return nil
	}
	_, words, ok := strings.Cut(err.Error(), `"\x00" must be `)
	if !ok {
		return nil
	}
	return strings.FieldsFunc(strings.Replace(words, " or ", ",", 1), func(r rune) bool { return r == ',' || r == ' ' })
}

// NumberFlag returns a flag whose value is a whole number within limits.
func NumberFlag(name string, value, least, most int, usageText string) *cli.IntFlag {
	usageText, defaultText := splitDefault(usageText)
	return &cli.IntFlag{Name: name, Value: value, Usage: usageText, DefaultText: defaultText, Action: func(_ *cli.Context, given int) error {
		switch {
		case given >= least && given <= most:
			return nil
		case least == 0 && most == math.MaxInt:
			return Usage("%s %d must not be negative", Dashed(name), given)
		}
		return Usage("%s %d must be from %d to %d", Dashed(name), given, least, most)
	}}
}
