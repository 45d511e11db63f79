package expression

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/curfew-dev/curfew/flow/internal/value"
)

// These functions are in the place of those of package expr, which return the members of an object in any order, and make texts of any
// length.

// keys returns the names of the members of an object, in their order.
func keys(of any) (any, error) {
	object, ok := of.(map[string]any)
	if !ok {
		return nil, errors.New("keys needs an object")
	}
	names := make([]any, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		names = append(names, name)
	}
	return names, nil
}

// members returns the members of an object, in the order of their names.
func members(of any) (any, error) {
	object, ok := of.(map[string]any)
	if !ok {
		return nil, errors.New("values needs an object")
	}
	all := make([]any, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		all = append(all, object[name])
	}
	return all, nil
}

// text returns a value as text.
func text(of any) (any, error) {
	room := value.MaxBytes
	v, err := value.Canonical(of, &room)
	return fmt.Sprint(v), err
}
