package engine

import (
	"context"
	"reflect"

	"github.com/curfew-dev/curfew/refusal"
)

// Given refuses a context that is nil.
func Given(ctx context.Context) error {
	if IsNil(ctx) {
		return refusal.Invalid("context", "must not be nil: use context.Background()")
	}
	return nil
}

// IsNil tells whether an interface holds nothing, or a pointer to nothing.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Interface, reflect.Chan:
		return r.IsNil()
	}
	return false
}
