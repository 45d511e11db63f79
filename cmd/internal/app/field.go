package app

import (
	"math"
	"reflect"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/internal/field"
)

// FieldFlag returns a flag that sets a field of tasks. A number can be 0, which removes a default of a kind.
func FieldFlag(f *field.Field, name string) cli.Flag {
	switch f.Type {
	case field.Span:
		if f.By == field.Kind && f.Name != "backoff_max_ms" { // queue.Backoff has no Max of none
			return LimitFlag(name, f.Help)
		}
		return DurationFlag(name, 0, f.Help)
	case field.Number, field.Percent:
		return NumberFlag(name, 0, 0, int(min(f.Most, math.MaxInt32)), f.Help)
	case field.Word:
		return ChoiceFlag(name, "", f.Help, f.Words...)
	}
	return &cli.StringFlag{Name: name, Usage: f.Help}
}

// SetField sets a field of a task, or of the defaults of a kind, to the value of a FieldFlag.
func SetField(c *cli.Context, f *field.Field, name string, of any) error {
	switch f.Type {
	case field.Span:
		d := DurationOf(c, name)
		if d == 0 && f.ZeroIsNone && c.IsSet(name) {
			d = field.None
		}
		f.In(of).SetInt(int64(d))
	case field.Instant:
		at, err := Instant(c, name)
		if err != nil {
			return err
		}
		f.In(of).Set(reflect.ValueOf(at))
	case field.Number, field.Percent:
		f.Set(of, strconv.Itoa(c.Int(name)))
	default:
		f.Set(of, c.String(name))
	}
	return nil
}
