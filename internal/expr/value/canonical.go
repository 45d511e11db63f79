package value

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of a value that is computed. They are larger than what a task can be given by default: the queue's own limit says how many
// bytes there are.
const (
	MaxBytes = 4 << 20 // of its JSON, without the escapes
	MaxDepth = 1000    // lists and objects within each other
)

// ErrTooLarge is returned for a value beyond these limits. It is one error, so that it does not depend on which limit is met first: the
// members of an object have no order.
var ErrTooLarge = fmt.Errorf("the value has more than %d bytes or %d levels, the limits", MaxBytes, MaxDepth)

// Canonical returns a computed value in the form in which Decode returns it after it was stored. It changes no list and no object: what
// needs no change is shared. It takes the bytes of the value from room, and stops when no room is left, since a list that has another one
// twice can be far larger than the memory that it takes.
func Canonical(v any, room *int) (any, error) {
	c := canon{room}
	v, _, err := c.value(v, 0)
	return v, err
}

// Check reports whether a value is within the limits.
func Check(v any) error {
	room := MaxBytes
	_, err := Canonical(v, &room)
	return err
}

type canon struct{ room *int }

// take takes bytes from the room.
func (c canon) take(n int) error {
	if *c.room -= n; *c.room < 0 {
		return ErrTooLarge
	}
	return nil
}

func (c canon) value(v any, depth int) (kept any, changed bool, err error) {
	if depth > MaxDepth {
		return nil, false, ErrTooLarge
	}
	var digits [32]byte
	switch v := v.(type) {
	case nil:
		return nil, false, c.take(len("null"))
	case bool:
		return v, false, c.take(len("true"))
	case int:
		return v, false, c.take(len(strconv.AppendInt(digits[:0], int64(v), 10)))
	case Large:
		return v, false, c.take(len(v.text))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, false, errors.New("the value has a number that is infinite or undefined, such as that of a division by 0")
		}
		kept = whole(v)
		return kept, kept != v, c.take(len(strconv.AppendFloat(digits[:0], v, 'g', -1, 64)))
	case string:
		if !utf8.ValidString(v) { // a part of a text can begin within a character
			v, changed = strings.ToValidUTF8(v, "\uFFFD"), true
		}
		return v, changed, c.take(len(v) + 2)
	case []any:
		return c.list(v, depth)
	case map[string]any:
		return c.object(v, depth)
	}
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return int(n.Int()), true, c.take(8)
	case n.CanUint(): // a byte of a text
		return int(n.Uint()), true, c.take(8)
	}
	return nil, false, errors.New("the value has a part that is not JSON")
}

func (c canon) list(list []any, depth int) (any, bool, error) {
	if list == nil {
		return nil, true, c.take(len("null"))
	}
	var other []any // the list with what is changed in it
	for i, item := range list {
		kept, changed, err := c.value(item, depth+1)
		if err != nil {
			return nil, false, err
		}
		if changed && other == nil {
			other = slices.Clone(list)
		}
		if changed {
			other[i] = kept
		}
		if err := c.take(len(",")); err != nil {
			return nil, false, err
		}
	}
	if other != nil {
		return other, true, c.take(len("[]"))
	}
	return list, false, c.take(len("[]"))
}

func (c canon) object(object map[string]any, depth int) (any, bool, error) {
	if object == nil {
		return nil, true, c.take(len("null"))
	}
	var other map[string]any
	for name, member := range object {
		kept, changed, err := c.value(member, depth+1)
		if err != nil {
			return nil, false, err
		}
		if changed && other == nil {
			other = maps.Clone(object)
		}
		if changed {
			other[name] = kept
		}
		if err := c.take(len(name) + len(`"":,`)); err != nil {
			return nil, false, err
		}
	}
	if other != nil {
		return other, true, c.take(len("{}"))
	}
	return object, false, c.take(len("{}"))
}
