package expr

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/builtin"

	"github.com/curfew-dev/curfew/internal/expr/value"
)

// ownFunctions are in the place of those of the library, which return the members of an object in any order, and make texts of
// any length.
var ownFunctions = map[string]*builtin.Function{"keys": own("keys", keys), "values": own("values", members), "string": own("string", text)}

func own(name string, f func(any) (any, error)) *builtin.Function {
	return &builtin.Function{
		Name:  name,
		Func:  func(arguments ...any) (any, error) { return f(arguments[0]) },
		Types: []reflect.Type{reflect.TypeFor[func(any) any]()},
	}
}

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
